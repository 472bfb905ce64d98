// The part of CUDA's runtime API that torch's own headers mention, declared so that the hook can be compiled where
// CUDA's headers are not installed. Nothing here is called or laid out by the hook: what torch's inline functions do
// with it is torch's.
#pragma once

struct CUstream_st;
struct CUevent_st;
struct CUgraph_st;
struct CUuserObject_st;
using cudaStream_t = CUstream_st*;
using cudaEvent_t = CUevent_st*;
using cudaGraph_t = CUgraph_st*;
using cudaUserObject_t = CUuserObject_st*;
using cudaHostFn_t = void (*)(void*);

enum cudaError_t : int { cudaSuccess = 0, cudaErrorNotReady = 600 };
enum cudaMemcpyKind : int {};
enum cudaStreamCaptureStatus : int {
  cudaStreamCaptureStatusNone,
  cudaStreamCaptureStatusActive,
  cudaStreamCaptureStatusInvalidated
};
enum cudaStreamCaptureMode : int {};
enum : unsigned { cudaUserObjectNoDestructorSync = 1, cudaGraphUserObjectMove = 1 };

extern "C" {
cudaError_t cudaGetLastError();
const char* cudaGetErrorString(cudaError_t);
cudaError_t cudaMemcpyAsync(void*, const void*, decltype(sizeof 0), cudaMemcpyKind, cudaStream_t);
cudaError_t cudaMemGetInfo(decltype(sizeof 0)*, decltype(sizeof 0)*);
cudaError_t cudaStreamSynchronize(cudaStream_t);
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus*);
cudaError_t cudaStreamGetPriority(cudaStream_t, int*);
cudaError_t cudaDeviceGetStreamPriorityRange(int*, int*);
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*);
cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t, cudaStreamCaptureStatus*, unsigned long long*, cudaGraph_t*,
                                        const void**, decltype(sizeof 0)*);
cudaError_t cudaUserObjectCreate(cudaUserObject_t*, void*, cudaHostFn_t, unsigned, unsigned);
cudaError_t cudaUserObjectRelease(cudaUserObject_t, unsigned);
cudaError_t cudaGraphRetainUserObject(cudaGraph_t, cudaUserObject_t, unsigned, unsigned);
}
