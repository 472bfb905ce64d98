// Nodes that are added one by one, and how they depend on each other.
#include <algorithm>

#include "cudart/error.h"
#include "cudart/graph.h"
#include "cudart/node_capture.h"
#include "phantora/events.h"
#include "phantora/transfer.h"

namespace phantora::cudart {

extern "C" {
Status cudaLaunchKernel(const void*, Dim3, Dim3, void**, size_t, Stream);
Status cudaLaunchHostFunc(Stream, void (*)(void*), void*);
Status cudaMemcpyAsync(void*, const void*, size_t, CopyKind, Stream);
Status cudaMemcpy2DAsync(void*, size_t, const void*, size_t, size_t, size_t, CopyKind, Stream);
Status cudaEventRecordWithFlags(Event, Stream, unsigned);
Status cudaStreamWaitEvent(Stream, Event, unsigned);
}

namespace {

using graphs::Graph;
using graphs::Node;
using graphs::NodeType;

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

bool is_element(unsigned bytes) { return bytes == 1 || bytes == 2 || bytes == 4; }

char* at(const PitchedPointer& memory, const Position& position) {
  return static_cast<char*>(memory.pointer) + (position.z * memory.y_size + position.y) * memory.pitch + position.x;
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

Status cudaGraphAddMemcpyNode(NodeHandle* node, GraphHandle graph, const NodeHandle* dependencies, size_t count,
                              const CopyParameters* copy) {
  if (!copy) return done(Status::invalid_value);
  const Extent& extent = copy->extent;
  bool flat = extent.depth <= 1 || (copy->src.y_size == extent.height && copy->dst.y_size == extent.height);
  if (copy->src_array || copy->dst_array || !flat) {
    fail("cudaGraphAddMemcpyNode of " PHANTORA_SONAME ": copies of arrays, and of parts of planes, are not emulated",
         "copy plane by plane, each by a node of its own");
  }
  const void* src = at(copy->src, copy->src_position);
  void* dst = at(copy->dst, copy->dst_position);
  return add(node, graph, dependencies, count, [&](Scratch& scratch) {
    return cudaMemcpy2DAsync(dst, copy->dst.pitch, src, copy->src.pitch, extent.width, extent.height * extent.depth,
                             copy->kind, scratch.handle());
  });
}

Status cudaGraphAddMemsetNode(NodeHandle* node, GraphHandle graph, const NodeHandle* dependencies, size_t count,
                              const MemsetParameters* set) {
  if (!set || !is_element(set->element_bytes) || !transfer::is_device(set->dst)) return done(Status::invalid_value);
  return add(node, graph, dependencies, count, [set](Scratch& scratch) {
    transfer::Rows rows{set->width * set->element_bytes, set->height, set->pitch, 0};
    transfer::set(scratch.id(), set->dst, &set->value, set->element_bytes, rows);
    return Status::success;
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
  if (!original || original->has_conditionals()) return done(Status::invalid_value);
  if (original->has_memory()) return done(Status::not_supported);
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

}  // extern "C"

}  // namespace phantora::cudart
