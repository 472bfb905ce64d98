// CUDA graphs: nodes and what they depend on, and their launch as many times as one likes.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "phantora/condition.h"
#include "phantora/export.h"
#include "phantora/graph_memory.h"
#include "phantora/recorder.h"

namespace phantora {
namespace graphs PHANTORA_EXPORT {

// cudaGraphNodeType.
enum class NodeType : int {
  kernel = 0,
  memcpy = 1,
  memset = 2,
  host = 3,
  graph = 4,
  empty = 5,
  wait_event = 6,
  event_record = 7,
  memory_alloc = 10,
  memory_free = 11,
  conditional = 13,
};

// Puts on a stream, without host time, what a node stands for: records and the computation of values. Called once for
// each launch of the graph, in an order that dependencies allow.
using Issue = std::function<void(StreamId)>;
using Issues = std::vector<std::shared_ptr<const Issue>>;

struct Graph;

// What a conditional node is: graphs of its own, of which a condition chooses at each launch.
struct Conditional {
  // cudaGraphConditionalNodeType.
  enum class Kind : int {
    branch = 0,  // the first body if the condition is not zero; else the second, if there is one
    loop = 1,    // the body, again and again while it is not zero
    choice = 2,  // the body of that number, if there is one
  };

  Conditional(std::shared_ptr<conditions::Condition> condition, Kind kind, size_t bodies);
  Conditional(const Conditional& other);  // with bodies of its own

  // The bodies as handles, to be filled; the array lives as long as this.
  void** lend_bodies();

  std::shared_ptr<conditions::Condition> condition;
  Kind kind;
  std::vector<std::shared_ptr<Graph>> bodies;

 private:
  std::vector<void*> handles_;
};

struct Node {
  Graph* graph = nullptr;
  NodeType type = NodeType::empty;
  int device = 0;
  bool enabled = true;
  std::vector<Node*> dependencies;
  Issues issues;
  std::shared_ptr<const Graph> child;              // of a node that is a graph
  std::shared_ptr<const Conditional> conditional;  // of a node that is one; `issues` come after it
  graph_memory::AllocationPtr memory;              // that it allocates or frees

  void add(Issue issue) { issues.push_back(std::make_shared<const Issue>(std::move(issue))); }
};

// Something that a graph keeps alive (cudaUserObject_t).
using Keepsake = std::shared_ptr<void>;

struct Graph {
  std::vector<std::unique_ptr<Node>> nodes;  // in the order in which they were made
  Issues prologue;                           // before all nodes
  std::vector<Keepsake> keepsakes;
  std::vector<std::shared_ptr<conditions::Condition>> conditions;  // made for it, whether or not a node has them yet
  std::weak_ptr<const Graph> instance;  // of one that has memory: that of its executable, as there is but one

  Node* add(NodeType type, int device, std::vector<Node*> dependencies);
  bool holds(const Node* node) const;
  bool has_conditionals() const;
  bool has_memory() const;
  // The same nodes once more, in the same order; memory nodes have the same memory.
  std::unique_ptr<Graph> clone() const;
};

class Plan;

// A graph made ready to be launched.
class Executable {
 public:
  // Throws std::invalid_argument if dependencies run in a circle, or a conditional node's body has nodes that may not
  // be in one. `frees_first`: a launch frees what the one before has left allocated.
  explicit Executable(const Graph& graph, bool frees_first = false);
  ~Executable();
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  // All that is on the stream comes before, all that will be after; so does the launch before this one. Costs the host
  // what one kernel does. Where the graph has conditional nodes, it waits (in real time) for what they ask for.
  // Unless there is memory for what it allocates, nothing is launched.
  graph_memory::Usage::Start launch(StreamId stream);

  // Takes over another graph of the same shape; false, and nothing has changed, if it has another.
  bool update(const Graph& graph);

  // The graph that it was made of, to be part of another one.
  const std::shared_ptr<const Graph>& graph() const { return graph_; }

 private:
  std::shared_ptr<const Graph> graph_;
  std::unique_ptr<Plan> plan_;
  const bool frees_first_;
  graph_memory::Usage memory_;
  StreamId previous_stream_ = 0;
  RecordingId previous_end_ = 0;
};

// --- handles (cudaGraph_t, cudaGraphExec_t): null for what is none, or no longer. A cudaGraphNode_t is a Node's
// address.

Graph* publish(std::unique_ptr<Graph> graph);
Executable* publish(std::unique_ptr<Executable> executable);
// Part of a node, with which it goes: to be found, not to be destroyed.
Graph* lend(const std::shared_ptr<Graph>& part);
Graph* find_graph(const void* handle);
Executable* find_executable(const void* handle);
bool destroy_graph(const void* handle);
bool destroy_executable(const void* handle);

}  // namespace graphs PHANTORA_EXPORT
}  // namespace phantora
