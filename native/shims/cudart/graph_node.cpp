// Nodes that are added one by one. Each is what the call that it stands for makes on a captured stream.
#include <algorithm>

#include "cudart/error.h"
#include "cudart/graph.h"
#include "phantora/capture.h"
#include "phantora/device.h"
#include "phantora/events.h"
#include "phantora/streams.h"

namespace phantora::cudart {

extern "C" {
Status cudaLaunchKernel(const void*, Dim3, Dim3, void**, size_t, Stream);
Status cudaLaunchHostFunc(Stream, void (*)(void*), void*);
Status cudaMemcpyAsync(void*, const void*, size_t, CopyKind, Stream);
Status cudaMemset2DAsync(void*, size_t, int, size_t, size_t, Stream);
Status cudaEventRecordWithFlags(Event, Stream, unsigned);
Status cudaStreamWaitEvent(Stream, Event, unsigned);
}

namespace {

using graphs::Graph;
using graphs::Node;
using graphs::NodeType;

// A stream that nothing runs on.
class Scratch {
 public:
  Scratch() : handle_(streams::create(device::current(), true, 0)), info_(*streams::find(handle_)) {}
  ~Scratch() { streams::destroy(handle_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  Stream handle() const { return handle_; }
  StreamId id() const { return info_.id; }

 private:
  Stream handle_;
  streams::Info info_;
};

template <typename Call>
Status add(NodeHandle* out, GraphHandle handle, const NodeHandle* dependencies, size_t count, Call call) {
  Graph* graph = graphs::find_graph(handle);
  if (!out || !graph) return done(Status::invalid_value);
  Scratch scratch;
  captures::Error begun =
      captures::begin(scratch.id(), device::current(), captures::Mode::relaxed, graph, nodes_of(dependencies, count));
  if (begun != captures::Error::none) return done(begun);
  Status status = call(scratch);
  if (status == Status::success) *out = captures::info(scratch.id())->dependencies.front();
  captures::end(scratch.id(), &graph);
  return status;
}

Status change_dependencies(GraphHandle handle, const NodeHandle* from, const NodeHandle* to, size_t count, bool add) {
  Graph* graph = graphs::find_graph(handle);
  if (!graph || (count && (!from || !to))) return done(Status::invalid_value);
  for (size_t i = 0; i < count; ++i) {
    auto *before = static_cast<Node*>(from[i]), *after = static_cast<Node*>(to[i]);
    if (!graph->holds(before) || !graph->holds(after) || before == after) return done(Status::invalid_value);
    auto& dependencies = after->dependencies;
    auto found = std::find(dependencies.begin(), dependencies.end(), before);
    if (add == (found != dependencies.end())) return done(Status::invalid_value);
    add ? dependencies.push_back(before) : static_cast<void>(dependencies.erase(found));
  }
  return Status::success;
}

[[noreturn]] void refuse(const char* function, const char* what) {
  fail(std::string(function) + " of " PHANTORA_SONAME ": " + what + " are not emulated yet",
       "capture the graph without them (torch.cond and while_loop outside of it)");
}

}  // namespace

extern "C" {

Status cudaGraphAddEmptyNode(NodeHandle* node, GraphHandle graph, const NodeHandle* dependencies, size_t count) {
  return add(node, graph, dependencies, count, [](Scratch& scratch) {
    captures::add(scratch.id(), NodeType::empty, [](StreamId) {});
    return Status::success;
  });
}

Status cudaGraphAddKernelNode(NodeHandle* node, GraphHandle graph, const NodeHandle* dependencies, size_t count,
                              const KernelNodeParameters* kernel) {
  if (!kernel) return done(Status::invalid_value);
  return add(node, graph, dependencies, count, [kernel](Scratch& scratch) {
    return cudaLaunchKernel(kernel->function, kernel->grid, kernel->block, kernel->arguments, kernel->shared_bytes,
                            scratch.handle());
  });
}

Status cudaGraphAddMemcpyNode1D(NodeHandle* node, GraphHandle graph, const NodeHandle* dependencies, size_t count,
                                void* dst, const void* src, size_t bytes, CopyKind kind) {
  return add(node, graph, dependencies, count,
             [=](Scratch& scratch) { return cudaMemcpyAsync(dst, src, bytes, kind, scratch.handle()); });
}

Status cudaGraphAddMemsetNode(NodeHandle* node, GraphHandle graph, const NodeHandle* dependencies, size_t count,
                              const MemsetParameters* set) {
  if (!set) return done(Status::invalid_value);
  bool equal_bytes = set->element_bytes == 1 || set->value == 0;
  if (!equal_bytes) refuse("cudaGraphAddMemsetNode", "elements of several bytes other than 0");
  return add(node, graph, dependencies, count, [set](Scratch& scratch) {
    return cudaMemset2DAsync(set->dst, set->pitch, static_cast<int>(set->value), set->width * set->element_bytes,
                             set->height, scratch.handle());
  });
}

Status cudaGraphAddHostNode(NodeHandle* node, GraphHandle graph, const NodeHandle* dependencies, size_t count,
                            const HostNodeParameters* host) {
  if (!host) return done(Status::invalid_value);
  return add(node, graph, dependencies, count,
             [host](Scratch& scratch) { return cudaLaunchHostFunc(scratch.handle(), host->function, host->data); });
}

Status cudaGraphAddChildGraphNode(NodeHandle* node, GraphHandle graph, const NodeHandle* dependencies, size_t count,
                                  GraphHandle child) {
  Graph* original = graphs::find_graph(child);
  if (!original) return done(Status::invalid_value);
  return add(node, graph, dependencies, count, [original](Scratch& scratch) {
    captures::add(scratch.id(), original->clone());
    return Status::success;
  });
}

Status cudaGraphAddEventRecordNode(NodeHandle* node, GraphHandle graph, const NodeHandle* dependencies, size_t count,
                                   Event event) {
  return add(node, graph, dependencies, count,
             [event](Scratch& scratch) { return cudaEventRecordWithFlags(event, scratch.handle(), event_external); });
}

Status cudaGraphAddEventWaitNode(NodeHandle* node, GraphHandle graph, const NodeHandle* dependencies, size_t count,
                                 Event event) {
  return add(node, graph, dependencies, count,
             [event](Scratch& scratch) { return cudaStreamWaitEvent(scratch.handle(), event, event_external); });
}

Status cudaGraphAddDependencies(GraphHandle graph, const NodeHandle* from, const NodeHandle* to, const GraphEdge*,
                                size_t count) {
  return change_dependencies(graph, from, to, count, true);
}

Status cudaGraphRemoveDependencies(GraphHandle graph, const NodeHandle* from, const NodeHandle* to, const GraphEdge*,
                                   size_t count) {
  return change_dependencies(graph, from, to, count, false);
}

Status cudaGraphConditionalHandleCreate(void*, GraphHandle, unsigned, unsigned) {
  refuse("cudaGraphConditionalHandleCreate", "conditional nodes");
}

Status cudaGraphAddNode(NodeHandle*, GraphHandle, const NodeHandle*, const GraphEdge*, size_t, void*) {
  refuse("cudaGraphAddNode", "nodes by general parameters, conditional ones among them,");
}

}  // extern "C"

}  // namespace phantora::cudart
