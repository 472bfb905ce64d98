// cudaGraphAddNode: nodes of all types by one call. Those of most types have a call of their own, too.
#include <optional>
#include <string>

#include "cudart/error.h"
#include "cudart/graph.h"
#include "cudart/node_capture.h"

namespace phantora::cudart {

extern "C" {
Status cudaGraphAddEmptyNode(NodeHandle*, GraphHandle, const NodeHandle*, size_t);
Status cudaGraphAddKernelNode(NodeHandle*, GraphHandle, const NodeHandle*, size_t, const KernelNodeParameters*);
Status cudaGraphAddMemcpyNode(NodeHandle*, GraphHandle, const NodeHandle*, size_t, const CopyParameters*);
Status cudaGraphAddMemsetNode(NodeHandle*, GraphHandle, const NodeHandle*, size_t, const MemsetParameters*);
Status cudaGraphAddHostNode(NodeHandle*, GraphHandle, const NodeHandle*, size_t, const HostNodeParameters*);
Status cudaGraphAddChildGraphNode(NodeHandle*, GraphHandle, const NodeHandle*, size_t, GraphHandle);
Status cudaGraphAddEventRecordNode(NodeHandle*, GraphHandle, const NodeHandle*, size_t, Event);
Status cudaGraphAddEventWaitNode(NodeHandle*, GraphHandle, const NodeHandle*, size_t, Event);
Status cudaGraphAddMemAllocNode(NodeHandle*, GraphHandle, const NodeHandle*, size_t, MemoryAllocParameters*);
Status cudaGraphAddMemFreeNode(NodeHandle*, GraphHandle, const NodeHandle*, size_t, void*);
}

namespace {

using graphs::Conditional;
using graphs::NodeType;

bool is_possible(Conditional::Kind kind, unsigned bodies) {
  switch (kind) {
    case Conditional::Kind::branch:
      return bodies == 1 || bodies == 2;
    case Conditional::Kind::loop:
      return bodies == 1;
    case Conditional::Kind::choice:
      return bodies >= 1;
  }
  return false;
}

// Its bodies are empty graphs, which the caller fills.
Status add_conditional(NodeHandle* node, GraphHandle graph, const NodeHandle* dependencies, size_t count,
                       ConditionalParameters& parameters) {
  auto kind = static_cast<Conditional::Kind>(parameters.type);
  std::shared_ptr<conditions::Condition> condition = conditions::find(parameters.handle);
  if (!condition || !is_possible(kind, parameters.size)) return done(Status::invalid_value);
  auto conditional = std::make_shared<Conditional>(condition, kind, parameters.size);
  Status status = add(node, graph, dependencies, count, [conditional](Scratch& scratch) {
    captures::add(scratch.id(), std::shared_ptr<const Conditional>(conditional));
    return Status::success;
  });
  if (status == Status::success) parameters.bodies = conditional->lend_bodies();
  return status;
}

[[noreturn]] void refuse(const std::string& what) {
  fail("cudaGraphAddNode of " PHANTORA_SONAME ": " + what + " are not emulated yet",
       "let child graphs be copied (cudaGraphChildGraphOwnershipClone)");
}

}  // namespace

extern "C" {

Status cudaGraphConditionalHandleCreate(uint64_t* handle, GraphHandle to, unsigned value, unsigned flags) {
  graphs::Graph* graph = graphs::find_graph(to);
  if (!handle || !graph || flags > condition_has_default) return done(Status::invalid_value);
  bool has_default = flags == condition_has_default;
  graph->conditions.push_back(conditions::create(has_default ? std::optional(value) : std::nullopt));
  *handle = graph->conditions.back()->handle();
  return Status::success;
}

Status cudaGraphAddNode(NodeHandle* node, GraphHandle graph, const NodeHandle* dependencies, const GraphEdge*,
                        size_t count, NodeParameters* parameters) {
  if (!parameters) return done(Status::invalid_value);
  switch (static_cast<NodeType>(parameters->type)) {
    case NodeType::kernel:
      return cudaGraphAddKernelNode(node, graph, dependencies, count, &parameters->kernel);
    case NodeType::memcpy:
      return cudaGraphAddMemcpyNode(node, graph, dependencies, count, &parameters->copy.parameters);
    case NodeType::memset:
      return cudaGraphAddMemsetNode(node, graph, dependencies, count, &parameters->set);
    case NodeType::host:
      return cudaGraphAddHostNode(node, graph, dependencies, count, &parameters->host);
    case NodeType::graph:
      if (parameters->graph.ownership != child_graph_is_copied) refuse("child graphs that become part of their parent");
      return cudaGraphAddChildGraphNode(node, graph, dependencies, count, parameters->graph.graph);
    case NodeType::empty:
      return cudaGraphAddEmptyNode(node, graph, dependencies, count);
    case NodeType::wait_event:
      return cudaGraphAddEventWaitNode(node, graph, dependencies, count, parameters->event);
    case NodeType::event_record:
      return cudaGraphAddEventRecordNode(node, graph, dependencies, count, parameters->event);
    case NodeType::memory_alloc:
      return cudaGraphAddMemAllocNode(node, graph, dependencies, count, &parameters->allocation);
    case NodeType::memory_free:
      return cudaGraphAddMemFreeNode(node, graph, dependencies, count, parameters->freed);
    case NodeType::conditional:
      return add_conditional(node, graph, dependencies, count, parameters->conditional);
  }
  refuse("nodes of type " + std::to_string(parameters->type) + " (8, 9: semaphores of other APIs)");
}

}  // extern "C"

}  // namespace phantora::cudart
