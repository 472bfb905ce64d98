// Graphs, what can be asked about them, and their launch.
#include "cudart/graph.h"

#include <algorithm>
#include <fstream>
#include <stdexcept>

#include "cudart/error.h"
#include "phantora/activity.h"
#include "phantora/capture.h"
#include "phantora/streams.h"

namespace phantora::cudart {

namespace {

using graphs::Executable;
using graphs::Graph;
using graphs::Node;
using graphs::NodeType;

constexpr int update_success = 0, update_topology_changed = 2;

Node* node_of(NodeHandle handle) { return static_cast<Node*>(handle); }

// As CUDA's queries do: without an array only the number; a larger array is filled up with nulls.
Status give(const std::vector<Node*>& nodes, NodeHandle* handles, size_t* count) {
  if (!count) return done(Status::invalid_value);
  if (handles) {
    for (size_t i = 0; i < *count; ++i) handles[i] = i < nodes.size() ? nodes[i] : nullptr;
    *count = std::min(*count, nodes.size());
  } else {
    *count = nodes.size();
  }
  return Status::success;
}

void give_edges(size_t count, GraphEdge* edges) {
  if (edges) std::fill_n(edges, count, GraphEdge{});
}

std::vector<Node*> dependents_of(const Node* node) {
  std::vector<Node*> dependents;
  for (const auto& other : node->graph->nodes) {
    const auto& needed = other->dependencies;
    if (std::find(needed.begin(), needed.end(), node) != needed.end()) dependents.push_back(other.get());
  }
  return dependents;
}

const char* name_of(NodeType type) {
  switch (type) {
    case NodeType::kernel:
      return "kernel";
    case NodeType::memcpy:
      return "memcpy";
    case NodeType::memset:
      return "memset";
    case NodeType::host:
      return "host";
    case NodeType::graph:
      return "graph";
    case NodeType::empty:
      return "empty";
    case NodeType::wait_event:
      return "wait event";
    case NodeType::event_record:
      return "event record";
    case NodeType::memory_alloc:
      return "memory allocation";
    case NodeType::memory_free:
      return "memory free";
    case NodeType::conditional:
      break;
  }
  return "conditional";
}

}  // namespace

extern "C" {

Status cudaGraphCreate(GraphHandle* graph, unsigned flags) {
  if (!graph || flags != 0) return done(Status::invalid_value);
  *graph = graphs::publish(std::make_unique<Graph>());
  return Status::success;
}

Status cudaGraphDestroy(GraphHandle graph) {
  return done(graphs::destroy_graph(graph) ? Status::success : Status::invalid_value);
}

Status cudaGraphClone(GraphHandle* clone, GraphHandle original) {
  Graph* graph = graphs::find_graph(original);
  if (!clone || !graph || graph->has_conditionals()) return done(Status::invalid_value);
  if (graph->has_memory()) return done(Status::not_supported);
  *clone = graphs::publish(graph->clone());
  return Status::success;
}

Status cudaGraphGetNodes(GraphHandle handle, NodeHandle* nodes, size_t* count) {
  Graph* graph = graphs::find_graph(handle);
  if (!graph) return done(Status::invalid_value);
  std::vector<Node*> all;
  for (const auto& node : graph->nodes) all.push_back(node.get());
  return give(all, nodes, count);
}

Status cudaGraphGetRootNodes(GraphHandle handle, NodeHandle* nodes, size_t* count) {
  Graph* graph = graphs::find_graph(handle);
  if (!graph) return done(Status::invalid_value);
  std::vector<Node*> roots;
  for (const auto& node : graph->nodes) {
    if (node->dependencies.empty()) roots.push_back(node.get());
  }
  return give(roots, nodes, count);
}

Status cudaGraphGetEdges(GraphHandle handle, NodeHandle* from, NodeHandle* to, GraphEdge* edges, size_t* count) {
  Graph* graph = graphs::find_graph(handle);
  if (!graph || !count || !from != !to) return done(Status::invalid_value);
  std::vector<Node*> begins, ends;
  for (const auto& node : graph->nodes) {
    for (Node* dependency : node->dependencies) {
      begins.push_back(dependency);
      ends.push_back(node.get());
    }
  }
  size_t room = *count;
  if (to) give(ends, to, &room);
  Status status = give(begins, from, count);
  if (from) give_edges(*count, edges);
  return status;
}

Status cudaGraphNodeGetType(NodeHandle node, int* type) {
  if (!node || !type) return done(Status::invalid_value);
  *type = static_cast<int>(node_of(node)->type);
  return Status::success;
}

Status cudaGraphNodeGetDependencies(NodeHandle node, NodeHandle* dependencies, GraphEdge* edges, size_t* count) {
  if (!node) return done(Status::invalid_value);
  Status status = give(node_of(node)->dependencies, dependencies, count);
  if (dependencies) give_edges(*count, edges);
  return status;
}

Status cudaGraphNodeGetDependentNodes(NodeHandle node, NodeHandle* dependents, GraphEdge* edges, size_t* count) {
  if (!node) return done(Status::invalid_value);
  Status status = give(dependents_of(node_of(node)), dependents, count);
  if (dependents) give_edges(*count, edges);
  return status;
}

Status cudaGraphChildGraphNodeGetGraph(NodeHandle node, GraphHandle* graph) {
  if (!node || !graph || !node_of(node)->child) return done(Status::invalid_value);
  *graph = graphs::lend(std::const_pointer_cast<Graph>(node_of(node)->child));
  return Status::success;
}

// Nodes and dependencies in Graphviz's language; flags would ask for more of each node than its type.
Status cudaGraphDebugDotPrint(GraphHandle handle, const char* path, unsigned) {
  Graph* graph = graphs::find_graph(handle);
  if (!graph || !path) return done(Status::invalid_value);
  std::ofstream out(path);
  out << "digraph {\n";
  for (const auto& node : graph->nodes) {
    out << "  \"" << node.get() << "\" [label=\"" << name_of(node->type) << "\"];\n";
    for (const Node* dependency : node->dependencies)
      out << "  \"" << dependency << "\" -> \"" << node.get() << "\";\n";
  }
  out << "}\n";
  return done(out.flush() ? Status::success : Status::invalid_value);
}

// A graph that has memory of its own can be ready for launch once at a time.
Status cudaGraphInstantiate(ExecutableHandle* executable, GraphHandle handle, unsigned long long flags) {
  Graph* graph = graphs::find_graph(handle);
  if (!executable || !graph || !graph->instance.expired()) return done(Status::invalid_value);
  try {
    auto made = std::make_unique<Executable>(*graph, (flags & graph_frees_on_launch) != 0);
    if (graph->has_memory()) graph->instance = made->graph();
    *executable = graphs::publish(std::move(made));
  } catch (const std::invalid_argument&) {
    return done(Status::invalid_value);
  }
  return Status::success;
}

Status cudaGraphInstantiateWithFlags(ExecutableHandle* executable, GraphHandle graph, unsigned long long flags) {
  return cudaGraphInstantiate(executable, graph, flags);
}

Status cudaGraphInstantiateWithParams(ExecutableHandle* executable, GraphHandle graph,
                                      GraphInstantiateParameters* parameters) {
  if (!parameters) return done(Status::invalid_value);
  parameters->error_node = nullptr;
  Status status = cudaGraphInstantiate(executable, graph, parameters->flags);
  parameters->result = status == Status::success ? 0 : 1;
  return status;
}

Status cudaGraphExecUpdate(ExecutableHandle executable, GraphHandle handle, GraphUpdateResult* result) {
  Executable* target = graphs::find_executable(executable);
  Graph* graph = graphs::find_graph(handle);
  if (!target || !graph) return done(Status::invalid_value);
  bool updated = target->update(*graph);
  if (result) *result = {updated ? update_success : update_topology_changed, nullptr, nullptr};
  return done(updated ? Status::success : Status::graph_update_failure);
}

Status cudaGraphExecDestroy(ExecutableHandle executable) {
  return done(graphs::destroy_executable(executable) ? Status::success : Status::invalid_value);
}

// Into a stream that is being captured, it becomes a node; one with conditional nodes cannot be that.
Status cudaGraphLaunch(ExecutableHandle handle, Stream stream) {
  Executable* executable = graphs::find_executable(handle);
  if (!executable) return done(Status::invalid_value);
  std::optional<StreamId> id = streams::enter(stream);
  if (!id) return done(Status::invalid_resource_handle);
  bool in_capture = captures::active(*id);
  const Graph& graph = *executable->graph();
  if (in_capture && (graph.has_conditionals() || graph.has_memory())) return done(Status::stream_capture_unsupported);
  if (in_capture && captures::add(*id, executable->graph())) return Status::success;
  activity::Call call(activity::Api::graph_launch);
  switch (executable->launch(*id)) {
    case graph_memory::Usage::Start::ready:
      return Status::success;
    case graph_memory::Usage::Start::still_allocated:
      return done(Status::invalid_value);
    case graph_memory::Usage::Start::out_of_memory:
      break;
  }
  return done(Status::memory_allocation);
}

// The launch is ready when it is instantiated.
Status cudaGraphUpload(ExecutableHandle handle, Stream stream) {
  bool known = graphs::find_executable(handle) && streams::find(stream);
  return done(known ? Status::success : Status::invalid_value);
}

}  // extern "C"

}  // namespace phantora::cudart
