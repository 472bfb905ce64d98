// Nodes of CUDA graphs by general parameters.
#pragma once
#include "graphs.h"

using cudaGraphConditionalHandle = unsigned long long;

struct cudaPos {
  size_t x, y, z;
};

struct cudaPitchedPtr {
  void* ptr;
  size_t pitch, xsize, ysize;
};

struct cudaGraphNodeParams {
  int type, reserved0[3];
  union {
    long long reserved1[29];
    struct {
      void* func;
      unsigned gridDim[3], blockDim[3], sharedMemBytes;
      void **kernelParams, **extra;
    } kernel;
    struct {
      int flags, reserved[3];
      void* srcArray;
      cudaPos srcPos;
      cudaPitchedPtr srcPtr;
      void* dstArray;
      cudaPos dstPos;
      cudaPitchedPtr dstPtr;
      struct {
        size_t width, height, depth;
      } extent;
      int kind;
    } memcpy;
    struct {
      void* dst;
      size_t pitch;
      unsigned value, elementSize;
      size_t width, height;
    } memset;
    struct {
      void (*fn)(void*);
      void* userData;
    } host;
    struct {
      cudaGraph_t graph;
      int ownership;
    } graph;
    struct {
      cudaEvent_t event;
    } event;
    struct {
      cudaGraphConditionalHandle handle;
      int type;
      unsigned size;
      cudaGraph_t* phGraph_out;
    } conditional;
  };
  long long reserved2;
};

extern "C" {
int cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t, cudaGraph_t*);
int cudaGraphAddNode(cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t*, const void*, size_t, cudaGraphNodeParams*);
}

inline constexpr int memcpy_node = 1, memset_node = 2, host_node = 3, graph_node = 4, event_record_node = 7,
                     conditional_node = 13;
