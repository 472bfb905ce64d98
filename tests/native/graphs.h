// CUDA graphs as the test programs make them: by capture, with a kernel that does nothing.
#pragma once
#include <functional>
#include <vector>

#include "check.h"
#include "cuda.h"

using cudaGraph_t = void*;
using cudaGraphExec_t = void*;
using cudaGraphNode_t = void*;

struct cudaGraphExecUpdateResultInfo {
  int result;
  cudaGraphNode_t errorNode, errorFromNode;
};

extern "C" {
int cudaStreamEndCapture(cudaStream_t, cudaGraph_t*);
int cudaStreamBeginCaptureToGraph(cudaStream_t, cudaGraph_t, const cudaGraphNode_t*, const void*, size_t, int);
int cudaStreamGetCaptureInfo(cudaStream_t, int*, unsigned long long*, cudaGraph_t*, const cudaGraphNode_t**,
                             const void**, size_t*);
int cudaStreamUpdateCaptureDependencies(cudaStream_t, cudaGraphNode_t*, const void*, size_t, unsigned);
int cudaGraphCreate(cudaGraph_t*, unsigned);
int cudaGraphDestroy(cudaGraph_t);
int cudaGraphClone(cudaGraph_t*, cudaGraph_t);
int cudaGraphGetNodes(cudaGraph_t, cudaGraphNode_t*, size_t*);
int cudaGraphNodeGetType(cudaGraphNode_t, int*);
int cudaGraphInstantiate(cudaGraphExec_t*, cudaGraph_t, unsigned long long);
int cudaGraphExecUpdate(cudaGraphExec_t, cudaGraph_t, cudaGraphExecUpdateResultInfo*);
int cudaGraphExecDestroy(cudaGraphExec_t);
int cudaGraphLaunch(cudaGraphExec_t, cudaStream_t);
int cudaMemsetAsync(void*, int, size_t, cudaStream_t);
}

inline constexpr int global_mode = 0;
inline constexpr int kernel_node = 0, empty_node = 5;
inline constexpr int cudaErrorGraphExecUpdateFailure = 910;

inline char kernel_stub;

// Makes a kernel of the program, which it launches by the stub's address.
inline void register_kernel(const char* stub, const char* name) {
  static void** module = __cudaRegisterFatBinary(nullptr);
  __cudaRegisterFunction(module, stub, nullptr, name, -1, nullptr, nullptr, nullptr, nullptr, nullptr);
}

inline void launch(cudaStream_t stream) {
  CHECK_EQUAL(cudaLaunchKernel(&kernel_stub, {1, 1, 1}, {32, 1, 1}, nullptr, 0, stream), cudaSuccess);
}

inline cudaStream_t new_stream() {
  cudaStream_t stream = nullptr;
  CHECK_EQUAL(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  return stream;
}

inline cudaEvent_t new_event() {
  cudaEvent_t event = nullptr;
  CHECK_EQUAL(cudaEventCreate(&event), cudaSuccess);
  return event;
}

// `stream` goes on after what `before` has come to.
inline void follow(cudaStream_t stream, cudaStream_t before) {
  cudaEvent_t event = new_event();
  CHECK_EQUAL(cudaEventRecord(event, before), cudaSuccess);
  CHECK_EQUAL(cudaStreamWaitEvent(stream, event, 0), cudaSuccess);
}

inline cudaGraph_t new_graph() {
  cudaGraph_t graph = nullptr;
  CHECK_EQUAL(cudaGraphCreate(&graph, 0), cudaSuccess);
  return graph;
}

inline cudaGraph_t captured(cudaStream_t stream, const std::function<void()>& work) {
  cudaGraph_t graph = nullptr;
  CHECK_EQUAL(cudaStreamBeginCapture(stream, global_mode), cudaSuccess);
  work();
  CHECK_EQUAL(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  return graph;
}

inline cudaGraphExec_t instantiated(cudaGraph_t graph) {
  cudaGraphExec_t executable = nullptr;
  CHECK_EQUAL(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  return executable;
}

inline void run(cudaGraphExec_t executable, cudaStream_t stream) {
  CHECK_EQUAL(cudaGraphLaunch(executable, stream), cudaSuccess);
  CHECK_EQUAL(cudaStreamSynchronize(stream), cudaSuccess);
}

inline size_t node_count(cudaGraph_t graph) {
  size_t count = 0;
  CHECK_EQUAL(cudaGraphGetNodes(graph, nullptr, &count), cudaSuccess);
  return count;
}

inline int type_of(cudaGraphNode_t node) {
  int type = -1;
  CHECK_EQUAL(cudaGraphNodeGetType(node, &type), cudaSuccess);
  return type;
}

inline void set_memory(void* memory, int value, cudaStream_t stream) {
  CHECK_EQUAL(cudaMemsetAsync(memory, value, 1, stream), cudaSuccess);
}

template <typename Item>
Item* on_device(const std::vector<Item>& items) {
  void* memory = nullptr;
  CHECK_EQUAL(cudaMalloc(&memory, items.size() * sizeof(Item)), cudaSuccess);
  CHECK_EQUAL(cudaMemcpy(memory, items.data(), items.size() * sizeof(Item), cudaMemcpyHostToDevice), cudaSuccess);
  return static_cast<Item*>(memory);
}
