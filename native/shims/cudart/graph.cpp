// Stream capture: truthfully none. Graphs themselves are unsupported (generated stubs).
#include <utility>

#include "cudart/error.h"
#include "phantora/recorder.h"
#include "phantora/streams.h"

namespace phantora::cudart {

namespace {

constexpr int not_capturing = 0;

thread_local int capture_mode = 0;  // cudaStreamCaptureModeGlobal

[[noreturn]] void refuse(const char* function) {
  fail(std::string(function) + " of " PHANTORA_SONAME ": CUDA graphs are not emulated yet",
       "switch CUDA graphs off (TorchTitan: --training.disable_cuda_graphs; torch.compile: mode other than "
       "\"reduce-overhead\"; Megatron-LM: without --cuda-graph-impl)");
}

}  // namespace

extern "C" {

Status cudaStreamIsCapturing(Stream stream, int* status) {
  if (!streams::find(stream)) return done(Status::invalid_resource_handle);
  *status = not_capturing;
  return Status::success;
}

Status cudaStreamGetCaptureInfo(Stream stream, int* status, unsigned long long* id, void** graph, const void** nodes,
                                const void** edges, size_t* count) {
  if (!streams::find(stream)) return done(Status::invalid_resource_handle);
  *status = not_capturing;
  if (id) *id = 0;
  if (graph) *graph = nullptr;
  if (nodes) *nodes = nullptr;
  if (edges) *edges = nullptr;
  if (count) *count = 0;
  return Status::success;
}

Status cudaThreadExchangeStreamCaptureMode(int* mode) {
  std::swap(*mode, capture_mode);
  return Status::success;
}

Status cudaStreamBeginCapture(Stream, int) { refuse("cudaStreamBeginCapture"); }
Status cudaStreamBeginCaptureToGraph(Stream, void*, const void*, const void*, size_t, int) {
  refuse("cudaStreamBeginCaptureToGraph");
}

}  // extern "C"

}  // namespace phantora::cudart
