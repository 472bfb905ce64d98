// The variants that code compiled with --default-stream per-thread calls: stream 0 is the calling thread's own.
#include "cudart/graph.h"
#include "cudart/types.h"
#include "phantora/streams.h"

namespace phantora::cudart {

namespace {
Stream own(Stream stream) { return stream ? stream : streams::per_thread(); }
}  // namespace

extern "C" {

Status cudaEventRecord(Event, Stream);
Status cudaEventRecordWithFlags(Event, Stream, unsigned);
Status cudaFreeAsync(void*, Stream);
Status cudaMallocAsync(void**, size_t, Stream);
Status cudaMallocFromPoolAsync(void**, size_t, Pool, Stream);
Status cudaLaunchHostFunc(Stream, void (*)(void*), void*);
Status cudaLaunchKernel(const void*, Dim3, Dim3, void**, size_t, Stream);
Status __cudaLaunchKernel(KernelHandle, Dim3, Dim3, void**, size_t, Stream);
Status cudaLaunchKernelExC(const LaunchConfig*, const void*, void**);
Status cudaLaunchCooperativeKernel(const void*, Dim3, Dim3, void**, size_t, Stream);
Status cudaMemcpyAsync(void*, const void*, size_t, CopyKind, Stream);
Status cudaMemcpy2DAsync(void*, size_t, const void*, size_t, size_t, size_t, CopyKind, Stream);
Status cudaMemsetAsync(void*, int, size_t, Stream);
Status cudaStreamAddCallback(Stream, void (*)(Stream, Status, void*), void*, unsigned);
Status cudaStreamSynchronize(Stream);
Status cudaStreamQuery(Stream);
Status cudaStreamWaitEvent(Stream, Event, unsigned);
Status cudaStreamGetFlags(Stream, unsigned*);
Status cudaStreamGetPriority(Stream, int*);
Status cudaStreamGetId(Stream, unsigned long long*);
Status cudaStreamGetDevice(Stream, int*);
Status cudaStreamIsCapturing(Stream, int*);
Status cudaStreamBeginCapture(Stream, int);
Status cudaStreamBeginCaptureToGraph(Stream, GraphHandle, const NodeHandle*, const GraphEdge*, size_t, int);
Status cudaStreamEndCapture(Stream, GraphHandle*);
Status cudaStreamGetCaptureInfo(Stream, int*, unsigned long long*, GraphHandle*, const NodeHandle**, const GraphEdge**,
                                size_t*);
Status cudaStreamUpdateCaptureDependencies(Stream, NodeHandle*, const GraphEdge*, size_t, unsigned);
Status cudaGraphInstantiateWithParams(ExecutableHandle*, GraphHandle, GraphInstantiateParameters*);
Status cudaGraphLaunch(ExecutableHandle, Stream);
Status cudaGraphUpload(ExecutableHandle, Stream);

Status cudaEventRecord_ptsz(Event event, Stream stream) { return cudaEventRecord(event, own(stream)); }

Status cudaEventRecordWithFlags_ptsz(Event event, Stream stream, unsigned flags) {
  return cudaEventRecordWithFlags(event, own(stream), flags);
}

Status cudaFreeAsync_ptsz(void* pointer, Stream stream) { return cudaFreeAsync(pointer, own(stream)); }

Status cudaMallocAsync_ptsz(void** pointer, size_t bytes, Stream stream) {
  return cudaMallocAsync(pointer, bytes, own(stream));
}

Status cudaMallocFromPoolAsync_ptsz(void** pointer, size_t bytes, Pool pool, Stream stream) {
  return cudaMallocFromPoolAsync(pointer, bytes, pool, own(stream));
}

Status cudaLaunchHostFunc_ptsz(Stream stream, void (*function)(void*), void* data) {
  return cudaLaunchHostFunc(own(stream), function, data);
}

Status cudaLaunchKernel_ptsz(const void* function, Dim3 grid, Dim3 block, void** arguments, size_t shared_bytes,
                             Stream stream) {
  return cudaLaunchKernel(function, grid, block, arguments, shared_bytes, own(stream));
}

Status __cudaLaunchKernel_ptsz(KernelHandle kernel, Dim3 grid, Dim3 block, void** arguments, size_t shared_bytes,
                               Stream stream) {
  return __cudaLaunchKernel(kernel, grid, block, arguments, shared_bytes, own(stream));
}

Status cudaLaunchKernelExC_ptsz(const LaunchConfig* config, const void* function, void** arguments) {
  LaunchConfig changed = *config;
  changed.stream = own(config->stream);
  return cudaLaunchKernelExC(&changed, function, arguments);
}

Status cudaLaunchCooperativeKernel_ptsz(const void* function, Dim3 grid, Dim3 block, void** arguments,
                                        size_t shared_bytes, Stream stream) {
  return cudaLaunchCooperativeKernel(function, grid, block, arguments, shared_bytes, own(stream));
}

Status cudaMemcpyAsync_ptsz(void* dst, const void* src, size_t bytes, CopyKind kind, Stream stream) {
  return cudaMemcpyAsync(dst, src, bytes, kind, own(stream));
}

Status cudaMemcpy2DAsync_ptsz(void* dst, size_t dst_pitch, const void* src, size_t src_pitch, size_t width,
                              size_t height, CopyKind kind, Stream stream) {
  return cudaMemcpy2DAsync(dst, dst_pitch, src, src_pitch, width, height, kind, own(stream));
}

Status cudaMemsetAsync_ptsz(void* dst, int value, size_t bytes, Stream stream) {
  return cudaMemsetAsync(dst, value, bytes, own(stream));
}

Status cudaMemcpy_ptds(void* dst, const void* src, size_t bytes, CopyKind kind) {
  Status status = cudaMemcpyAsync(dst, src, bytes, kind, streams::per_thread());
  return status == Status::success ? cudaStreamSynchronize(streams::per_thread()) : status;
}

Status cudaMemset_ptds(void* dst, int value, size_t bytes) {
  return cudaMemsetAsync(dst, value, bytes, streams::per_thread());
}

Status cudaStreamAddCallback_ptsz(Stream stream, void (*callback)(Stream, Status, void*), void* data, unsigned flags) {
  return cudaStreamAddCallback(own(stream), callback, data, flags);
}

Status cudaStreamSynchronize_ptsz(Stream stream) { return cudaStreamSynchronize(own(stream)); }
Status cudaStreamQuery_ptsz(Stream stream) { return cudaStreamQuery(own(stream)); }

Status cudaStreamWaitEvent_ptsz(Stream stream, Event event, unsigned flags) {
  return cudaStreamWaitEvent(own(stream), event, flags);
}

Status cudaStreamGetFlags_ptsz(Stream stream, unsigned* flags) { return cudaStreamGetFlags(own(stream), flags); }
Status cudaStreamGetPriority_ptsz(Stream stream, int* value) { return cudaStreamGetPriority(own(stream), value); }
Status cudaStreamGetId_ptsz(Stream stream, unsigned long long* id) { return cudaStreamGetId(own(stream), id); }
Status cudaStreamGetDevice_ptsz(Stream stream, int* device) { return cudaStreamGetDevice(own(stream), device); }
Status cudaStreamIsCapturing_ptsz(Stream stream, int* status) { return cudaStreamIsCapturing(own(stream), status); }

Status cudaStreamBeginCapture_ptsz(Stream stream, int mode) { return cudaStreamBeginCapture(own(stream), mode); }

Status cudaStreamBeginCaptureToGraph_ptsz(Stream stream, GraphHandle graph, const NodeHandle* nodes,
                                          const GraphEdge* edges, size_t count, int mode) {
  return cudaStreamBeginCaptureToGraph(own(stream), graph, nodes, edges, count, mode);
}

Status cudaStreamEndCapture_ptsz(Stream stream, GraphHandle* graph) { return cudaStreamEndCapture(own(stream), graph); }

Status cudaStreamGetCaptureInfo_ptsz(Stream stream, int* status, unsigned long long* id, GraphHandle* graph,
                                     const NodeHandle** nodes, const GraphEdge** edges, size_t* count) {
  return cudaStreamGetCaptureInfo(own(stream), status, id, graph, nodes, edges, count);
}

Status cudaStreamUpdateCaptureDependencies_ptsz(Stream stream, NodeHandle* nodes, const GraphEdge* edges, size_t count,
                                                unsigned flags) {
  return cudaStreamUpdateCaptureDependencies(own(stream), nodes, edges, count, flags);
}

Status cudaGraphInstantiateWithParams_ptsz(ExecutableHandle* executable, GraphHandle graph,
                                           GraphInstantiateParameters* parameters) {
  return cudaGraphInstantiateWithParams(executable, graph, parameters);
}

Status cudaGraphLaunch_ptsz(ExecutableHandle executable, Stream stream) {
  return cudaGraphLaunch(executable, own(stream));
}

Status cudaGraphUpload_ptsz(ExecutableHandle executable, Stream stream) {
  return cudaGraphUpload(executable, own(stream));
}

}  // extern "C"

}  // namespace phantora::cudart
