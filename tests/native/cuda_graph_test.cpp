// CUDA graphs. Case "semantics": what programs can see, without a simulator. The others: what a launch records.
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "graphs.h"
#include "phantora/capi.h"

using cudaUserObject_t = void*;

struct cudaKernelNodeParams {
  void* func;
  dim3 gridDim, blockDim;
  unsigned sharedMemBytes;
  void **kernelParams, **extra;
};

extern "C" {
int cudaThreadExchangeStreamCaptureMode(int*);
int cudaGraphGetRootNodes(cudaGraph_t, cudaGraphNode_t*, size_t*);
int cudaGraphGetEdges(cudaGraph_t, cudaGraphNode_t*, cudaGraphNode_t*, void*, size_t*);
int cudaGraphNodeGetDependencies(cudaGraphNode_t, cudaGraphNode_t*, void*, size_t*);
int cudaGraphAddEmptyNode(cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t*, size_t);
int cudaGraphAddKernelNode(cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t*, size_t, const cudaKernelNodeParams*);
int cudaGraphAddMemcpyNode1D(cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t*, size_t, void*, const void*, size_t,
                             int);
int cudaGraphAddChildGraphNode(cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t*, size_t, cudaGraph_t);
int cudaGraphAddDependencies(cudaGraph_t, const cudaGraphNode_t*, const cudaGraphNode_t*, const void*, size_t);
int cudaGraphRetainUserObject(cudaGraph_t, cudaUserObject_t, unsigned, unsigned);
int cudaUserObjectCreate(cudaUserObject_t*, void*, void (*)(void*), unsigned, unsigned);
int cudaEventRecordWithFlags(cudaEvent_t, cudaStream_t, unsigned);
}

namespace {

constexpr int cudaErrorIllegalState = 401, cudaErrorStreamCaptureUnsupported = 900,
              cudaErrorStreamCaptureInvalidated = 901, cudaErrorStreamCaptureMerge = 902,
              cudaErrorStreamCaptureUnmatched = 903, cudaErrorStreamCaptureUnjoined = 904,
              cudaErrorStreamCaptureIsolation = 905, cudaErrorCapturedEvent = 907,
              cudaErrorStreamCaptureWrongThread = 908;
constexpr int thread_local_mode = 1, relaxed_mode = 2;

size_t edge_count(cudaGraph_t graph) {
  size_t count = 0;
  CHECK_EQUAL(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &count), cudaSuccess);
  return count;
}

int status_of(cudaStream_t stream) {
  int status = -1;
  CHECK_EQUAL(cudaStreamIsCapturing(stream, &status), cudaSuccess);
  return status;
}

// --- semantics

// A launch computes again with what is there then.
void test_replays_copy_again() {
  cudaStream_t stream = new_stream();
  int *pinned = nullptr, back = 0;
  void *first = nullptr, *second = nullptr;
  CHECK_EQUAL(cudaMallocHost(reinterpret_cast<void**>(&pinned), sizeof *pinned), cudaSuccess);
  CHECK_EQUAL(cudaMalloc(&first, 4), cudaSuccess);
  CHECK_EQUAL(cudaMalloc(&second, 4), cudaSuccess);
  *pinned = 1;
  cudaGraph_t graph = captured(stream, [&] {
    CHECK_EQUAL(cudaMemcpyAsync(first, pinned, 4, cudaMemcpyHostToDevice, stream), cudaSuccess);
    CHECK_EQUAL(cudaMemcpyAsync(second, first, 4, cudaMemcpyDeviceToDevice, stream), cudaSuccess);
  });
  CHECK_EQUAL(node_count(graph), 2u);
  CHECK_EQUAL(cudaMemset(second, 0, 4), cudaSuccess);
  cudaGraphExec_t executable = instantiated(graph);
  for (int value : {5, 6}) {
    *pinned = value;
    CHECK_EQUAL(cudaGraphLaunch(executable, stream), cudaSuccess);
    CHECK_EQUAL(cudaStreamSynchronize(stream), cudaSuccess);
    CHECK_EQUAL(cudaMemcpy(&back, second, 4, cudaMemcpyDeviceToHost), cudaSuccess);
    CHECK_EQUAL(back, value);
  }
  CHECK_EQUAL(cudaGraphDestroy(graph), cudaSuccess);
  CHECK_EQUAL(cudaGraphDestroy(graph), cudaErrorInvalidValue);
  CHECK_EQUAL(cudaGraphLaunch(executable, stream), cudaSuccess);  // outlives the graph
  CHECK_EQUAL(cudaGraphExecDestroy(executable), cudaSuccess);
  CHECK_EQUAL(cudaGraphLaunch(executable, stream), cudaErrorInvalidValue);
}

void test_capture_status_and_info() {
  cudaStream_t stream = new_stream();
  CHECK_EQUAL(status_of(stream), 0);
  CHECK_EQUAL(cudaStreamBeginCapture(stream, thread_local_mode), cudaSuccess);
  CHECK_EQUAL(cudaStreamBeginCapture(stream, thread_local_mode), cudaErrorIllegalState);
  launch(stream);
  int status = 0;
  unsigned long long id = 0;
  cudaGraph_t graph = nullptr;
  const cudaGraphNode_t* nodes = nullptr;
  size_t count = 0;
  CHECK_EQUAL(cudaStreamGetCaptureInfo(stream, &status, &id, &graph, &nodes, nullptr, &count), cudaSuccess);
  CHECK_EQUAL(status, 1);
  CHECK(id != 0);
  CHECK_EQUAL(count, 1u);
  int type = -1;
  CHECK_EQUAL(cudaGraphNodeGetType(nodes[0], &type), cudaSuccess);
  CHECK_EQUAL(type, kernel_node);
  // Nodes put in by hand: what follows depends on them.
  cudaGraphNode_t empty = nullptr, after = nodes[0];
  CHECK_EQUAL(cudaGraphAddEmptyNode(&empty, graph, &after, 1), cudaSuccess);
  CHECK_EQUAL(cudaStreamUpdateCaptureDependencies(stream, &empty, nullptr, 1, 1), cudaSuccess);
  launch(stream);
  cudaGraph_t ended = nullptr;
  CHECK_EQUAL(cudaStreamEndCapture(stream, &ended), cudaSuccess);
  CHECK(ended == graph);
  CHECK_EQUAL(node_count(graph), 3u);
  CHECK_EQUAL(edge_count(graph), 2u);
  cudaGraphNode_t all[4] = {};
  size_t room = 4;
  CHECK_EQUAL(cudaGraphGetNodes(graph, all, &room), cudaSuccess);
  CHECK_EQUAL(room, 3u);
  CHECK(all[3] == nullptr);
  cudaGraphNode_t dependency = nullptr;
  room = 1;
  CHECK_EQUAL(cudaGraphNodeGetDependencies(all[2] == empty ? all[1] : all[2], &dependency, nullptr, &room),
              cudaSuccess);
  CHECK(dependency == empty);
  CHECK_EQUAL(cudaGraphNodeGetType(empty, &type), cudaSuccess);
  CHECK_EQUAL(type, empty_node);
  CHECK_EQUAL(status_of(stream), 0);
}

void test_what_a_capture_forbids() {
  cudaStream_t stream = new_stream(), other = new_stream();
  cudaGraph_t graph = nullptr;
  void* pointer = nullptr;
  CHECK_EQUAL(cudaStreamBeginCapture(nullptr, global_mode), cudaErrorStreamCaptureUnsupported);
  CHECK_EQUAL(cudaStreamEndCapture(stream, &graph), cudaErrorIllegalState);

  const std::function<int()> forbidden[] = {
      [&] { return cudaStreamSynchronize(stream); },
      [&] { return cudaStreamQuery(stream); },
      [&] { return cudaDeviceSynchronize(); },
      [&] { return cudaMalloc(&pointer, 512); },
  };
  for (const auto& call : forbidden) {
    CHECK_EQUAL(cudaStreamBeginCapture(stream, global_mode), cudaSuccess);
    CHECK_EQUAL(call(), cudaErrorStreamCaptureUnsupported);
    CHECK_EQUAL(status_of(stream), 2);
    CHECK_EQUAL(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
    CHECK(graph == nullptr);
  }

  // A thread that says so may do what others' work could have to wait for.
  int mode = relaxed_mode;
  CHECK_EQUAL(cudaStreamBeginCapture(stream, global_mode), cudaSuccess);
  CHECK_EQUAL(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
  CHECK_EQUAL(mode, global_mode);
  CHECK_EQUAL(cudaMalloc(&pointer, 512), cudaSuccess);
  CHECK_EQUAL(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
  CHECK_EQUAL(mode, relaxed_mode);
  CHECK_EQUAL(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  CHECK_EQUAL(node_count(graph), 0u);

  // A stream that is destroyed takes its capture with it; a branch that is, the capture's validity.
  cudaStream_t gone = new_stream();
  CHECK_EQUAL(cudaStreamBeginCapture(gone, global_mode), cudaSuccess);
  launch(gone);
  CHECK_EQUAL(cudaStreamDestroy(gone), cudaSuccess);
  CHECK_EQUAL(cudaMalloc(&pointer, 512), cudaSuccess);
  gone = new_stream();
  CHECK_EQUAL(cudaStreamBeginCapture(stream, global_mode), cudaSuccess);
  follow(gone, stream);
  CHECK_EQUAL(cudaStreamDestroy(gone), cudaSuccess);
  CHECK_EQUAL(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);

  // Work that the origin never waits for.
  CHECK_EQUAL(cudaStreamBeginCapture(stream, global_mode), cudaSuccess);
  launch(stream);
  follow(other, stream);
  launch(other);
  CHECK_EQUAL(status_of(other), 1);
  CHECK_EQUAL(cudaStreamEndCapture(other, &graph), cudaErrorStreamCaptureUnmatched);
  CHECK_EQUAL(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureUnjoined);
  CHECK_EQUAL(status_of(other), 0);

  // Work from outside.
  launch(other);
  cudaEvent_t event = new_event();
  CHECK_EQUAL(cudaEventRecord(event, other), cudaSuccess);
  CHECK_EQUAL(cudaStreamBeginCapture(stream, global_mode), cudaSuccess);
  CHECK_EQUAL(cudaStreamWaitEvent(stream, event, 0), cudaErrorStreamCaptureIsolation);
  CHECK_EQUAL(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);

  // Two captures do not meet.
  CHECK_EQUAL(cudaStreamBeginCapture(stream, global_mode), cudaSuccess);
  CHECK_EQUAL(cudaStreamBeginCapture(other, global_mode), cudaSuccess);
  CHECK_EQUAL(cudaEventRecord(event, other), cudaSuccess);
  CHECK_EQUAL(cudaEventQuery(event), cudaErrorCapturedEvent);
  CHECK_EQUAL(cudaEventSynchronize(event), cudaErrorCapturedEvent);
  CHECK_EQUAL(cudaStreamWaitEvent(stream, event, 0), cudaErrorStreamCaptureMerge);
  CHECK_EQUAL(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
  CHECK_EQUAL(cudaStreamEndCapture(other, &graph), cudaErrorStreamCaptureInvalidated);

  CHECK_EQUAL(cudaStreamBeginCapture(stream, thread_local_mode), cudaSuccess);
  std::thread([&] { CHECK_EQUAL(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureWrongThread); }).join();
  CHECK_EQUAL(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  cudaGetLastError();
}

void test_graphs_made_by_hand() {
  cudaStream_t stream = new_stream();
  void *source = nullptr, *target = nullptr;
  int back = 0;
  CHECK_EQUAL(cudaMalloc(&source, 4), cudaSuccess);
  CHECK_EQUAL(cudaMalloc(&target, 4), cudaSuccess);
  CHECK_EQUAL(cudaMemset(source, 1, 4), cudaSuccess);
  cudaGraph_t graph = nullptr, parent = nullptr, clone = nullptr;
  cudaGraphNode_t copy = nullptr, kernel = nullptr, child = nullptr;
  CHECK_EQUAL(cudaGraphCreate(&graph, 0), cudaSuccess);
  CHECK_EQUAL(cudaGraphAddMemcpyNode1D(&copy, graph, nullptr, 0, target, source, 4, cudaMemcpyDeviceToDevice),
              cudaSuccess);
  cudaKernelNodeParams parameters = {&kernel_stub, {1, 1, 1}, {32, 1, 1}, 0, nullptr, nullptr};
  CHECK_EQUAL(cudaGraphAddKernelNode(&kernel, graph, nullptr, 0, &parameters), cudaSuccess);
  size_t roots = 0;
  CHECK_EQUAL(cudaGraphGetRootNodes(graph, nullptr, &roots), cudaSuccess);
  CHECK_EQUAL(roots, 2u);
  CHECK_EQUAL(cudaGraphAddDependencies(graph, &copy, &kernel, nullptr, 1), cudaSuccess);
  CHECK_EQUAL(cudaGraphAddDependencies(graph, &copy, &kernel, nullptr, 1), cudaErrorInvalidValue);  // there already
  CHECK_EQUAL(cudaGraphGetRootNodes(graph, nullptr, &roots), cudaSuccess);
  CHECK_EQUAL(roots, 1u);

  CHECK_EQUAL(cudaGraphCreate(&parent, 0), cudaSuccess);
  CHECK_EQUAL(cudaGraphAddChildGraphNode(&child, parent, nullptr, 0, graph), cudaSuccess);
  CHECK_EQUAL(cudaGraphClone(&clone, parent), cudaSuccess);
  CHECK_EQUAL(cudaGraphLaunch(instantiated(clone), stream), cudaSuccess);
  CHECK_EQUAL(cudaStreamSynchronize(stream), cudaSuccess);
  CHECK_EQUAL(cudaMemcpy(&back, target, 4, cudaMemcpyDeviceToHost), cudaSuccess);
  CHECK_EQUAL(back, 0x01010101);

  cudaGraphExec_t executable = nullptr;
  CHECK_EQUAL(cudaGraphAddDependencies(graph, &kernel, &copy, nullptr, 1), cudaSuccess);
  CHECK_EQUAL(cudaGraphInstantiate(&executable, graph, 0), cudaErrorInvalidValue);  // a circle
  cudaGetLastError();
}

void test_updates() {
  cudaStream_t stream = new_stream();
  void* memory = nullptr;
  int back = 0;
  CHECK_EQUAL(cudaMalloc(&memory, 4), cudaSuccess);
  auto set_to = [&](int byte) {
    return captured(stream, [&] { CHECK_EQUAL(cudaMemsetAsync(memory, byte, 4, stream), cudaSuccess); });
  };
  cudaGraphExec_t executable = instantiated(set_to(1));
  cudaGraphExecUpdateResultInfo result = {};
  CHECK_EQUAL(cudaGraphExecUpdate(executable, set_to(2), &result), cudaSuccess);
  CHECK_EQUAL(result.result, 0);
  CHECK_EQUAL(cudaGraphLaunch(executable, stream), cudaSuccess);
  CHECK_EQUAL(cudaStreamSynchronize(stream), cudaSuccess);
  CHECK_EQUAL(cudaMemcpy(&back, memory, 4, cudaMemcpyDeviceToHost), cudaSuccess);
  CHECK_EQUAL(back, 0x02020202);
  cudaGraph_t other = captured(stream, [&] { launch(stream); });
  CHECK_EQUAL(cudaGraphExecUpdate(executable, other, &result), cudaErrorGraphExecUpdateFailure);
  CHECK(result.result != 0);
  cudaGetLastError();
}

int destroyed = 0;

void test_user_objects() {
  cudaUserObject_t object = nullptr;
  cudaGraph_t graph = nullptr;
  CHECK_EQUAL(cudaGraphCreate(&graph, 0), cudaSuccess);
  CHECK_EQUAL(
      cudaUserObjectCreate(&object, &destroyed, [](void* count) { ++*static_cast<int*>(count); }, 1, 1), cudaSuccess);
  CHECK_EQUAL(cudaGraphRetainUserObject(graph, object, 1, 1), cudaSuccess);  // the caller's reference moves
  cudaGraphExec_t executable = instantiated(graph);
  CHECK_EQUAL(cudaGraphDestroy(graph), cudaSuccess);
  CHECK_EQUAL(destroyed, 0);
  CHECK_EQUAL(cudaGraphExecDestroy(executable), cudaSuccess);
  CHECK_EQUAL(destroyed, 1);
}

// The legacy default stream does not wait for a capture on a stream that does not block; events that were never
// recorded do not matter.
void test_neighbours() {
  cudaStream_t stream = new_stream();
  captured(stream, [&] {
    launch(nullptr);
    CHECK_EQUAL(cudaStreamWaitEvent(stream, new_event(), 0), cudaSuccess);
    launch(stream);
  });
  CHECK_EQUAL(cudaStreamSynchronize(nullptr), cudaSuccess);
}

void semantics() {
  test_replays_copy_again();
  test_capture_status_and_info();
  test_what_a_capture_forbids();
  test_graphs_made_by_hand();
  test_updates();
  test_user_objects();
  test_neighbours();
}

// --- records

// Two kernels side by side between two others, launched twice.
void fork_join() {
  cudaStream_t stream = new_stream(), side = new_stream();
  cudaGraph_t graph = captured(stream, [&] {
    launch(stream);
    follow(side, stream);
    launch(stream);
    launch(side);
    follow(stream, side);
    launch(stream);
  });
  CHECK_EQUAL(edge_count(graph), 4u);
  cudaGraphExec_t executable = instantiated(graph);
  int64_t before_ns = phantora_now_ns();
  CHECK_EQUAL(cudaGraphLaunch(executable, stream), cudaSuccess);
  std::printf("%lld\n", static_cast<long long>(phantora_now_ns() - before_ns));
  CHECK_EQUAL(cudaGraphLaunch(executable, stream), cudaSuccess);
}

// A launch on another stream comes after the one before it; a graph in a capture becomes part of it.
void nested() {
  cudaStream_t stream = new_stream(), other = new_stream();
  cudaGraphExec_t inner = instantiated(captured(stream, [&] { launch(stream); }));
  CHECK_EQUAL(cudaGraphLaunch(inner, stream), cudaSuccess);
  CHECK_EQUAL(cudaGraphLaunch(inner, other), cudaSuccess);
  cudaGraphExec_t outer = instantiated(captured(stream, [&] {
    launch(stream);
    CHECK_EQUAL(cudaGraphLaunch(inner, stream), cudaSuccess);
  }));
  CHECK_EQUAL(cudaGraphLaunch(outer, stream), cudaSuccess);
}

// Roots of their own, an event that each launch records, and one that each launch waits for.
void roots_and_events() {
  cudaStream_t stream = new_stream();
  cudaEvent_t event = new_event();
  constexpr unsigned external = 1;
  cudaGraph_t graph = captured(stream, [&] {
    launch(stream);
    CHECK_EQUAL(cudaEventRecordWithFlags(event, stream, external), cudaSuccess);
  });
  cudaGraphNode_t root = nullptr;
  cudaKernelNodeParams parameters = {&kernel_stub, {1, 1, 1}, {32, 1, 1}, 0, nullptr, nullptr};
  CHECK_EQUAL(cudaGraphAddKernelNode(&root, graph, nullptr, 0, &parameters), cudaSuccess);
  CHECK_EQUAL(cudaGraphLaunch(instantiated(graph), stream), cudaSuccess);
  CHECK_EQUAL(cudaEventSynchronize(event), cudaSuccess);
}

// Launched after what it copies from has been freed: the program does not outlive that.
void freed() {
  cudaStream_t stream = new_stream();
  void *first = nullptr, *second = nullptr;
  CHECK_EQUAL(cudaMalloc(&first, 64 << 20), cudaSuccess);
  CHECK_EQUAL(cudaMalloc(&second, 64 << 20), cudaSuccess);
  cudaGraphExec_t executable = instantiated(captured(
      stream, [&] { CHECK_EQUAL(cudaMemcpyAsync(second, first, 4, cudaMemcpyDeviceToDevice, stream), cudaSuccess); }));
  CHECK_EQUAL(cudaGraphLaunch(executable, stream), cudaSuccess);
  CHECK_EQUAL(cudaFree(first), cudaSuccess);
  cudaGraphLaunch(executable, stream);
  CHECK(cudaStreamSynchronize(stream) != cudaSuccess);
}

const std::map<std::string, void (*)()> cases = {
    {"freed", freed},
    {"semantics", semantics},
    {"fork_join", fork_join},
    {"nested", nested},
    {"roots_and_events", roots_and_events},
};

}  // namespace

int main(int, char** argv) {
  register_kernel(&kernel_stub, "stub");
  cases.at(argv[1])();
  return checks_failed();
}
