// CUDA graphs: nodes and what they depend on, and their launch as many times as one likes.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "phantora/export.h"
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
};

// Puts on a stream, without host time, what a node stands for: records and the computation of values. Called once for
// each launch of the graph, in an order that dependencies allow.
using Issue = std::function<void(StreamId)>;
using Issues = std::vector<std::shared_ptr<const Issue>>;

struct Graph;

struct Node {
  Graph* graph = nullptr;
  NodeType type = NodeType::empty;
  int device = 0;
  bool enabled = true;
  std::vector<Node*> dependencies;
  Issues issues;
  std::shared_ptr<const Graph> child;  // of a node that is a graph

  void add(Issue issue) { issues.push_back(std::make_shared<const Issue>(std::move(issue))); }
};

// Something that a graph keeps alive (cudaUserObject_t).
using Keepsake = std::shared_ptr<void>;

struct Graph {
  std::vector<std::unique_ptr<Node>> nodes;  // in the order in which they were made
  Issues prologue;                           // before all nodes
  std::vector<Keepsake> keepsakes;

  Node* add(NodeType type, int device, std::vector<Node*> dependencies);
  bool holds(const Node* node) const;
  // The same nodes once more, in the same order.
  std::unique_ptr<Graph> clone() const;
};

// A graph made ready: its nodes laid out on branches, each a stream of its own but the first, which is the stream that
// it is launched on. A node follows the first of its dependencies that is the latest of a branch; the others it waits
// for.
class Executable {
 public:
  explicit Executable(const Graph& graph);  // throws std::invalid_argument if dependencies run in a circle
  ~Executable();
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  // All that is on the stream comes before, all that will be after; so does the launch before this one. Costs the host
  // what one kernel does.
  void launch(StreamId stream);

  // Takes over another graph of the same shape; false, and nothing has changed, if it has another.
  bool update(const Graph& graph);

  // The graph that it was made of, to be part of another one.
  const std::shared_ptr<const Graph>& graph() const { return graph_; }

 private:
  struct Step {
    Issues issues;
    int device = 0;
    std::vector<size_t> dependencies;  // earlier steps
    size_t branch = 0;
    bool awaited = false;  // by a step of another branch
    bool last = false;     // nothing depends on it
  };
  struct Branch {
    void* handle = nullptr;  // streams::Handle; none for the first
    StreamId stream = 0;     // behind the handle
    int device = 0;
    size_t latest = 0;
  };

  void lay_out(const Graph& graph);
  std::vector<size_t> add_steps(const Graph& graph, const std::vector<size_t>& before);
  void choose_branch(size_t index);
  void issue(StreamId stream);

  std::shared_ptr<const Graph> graph_;
  std::vector<Step> steps_;
  std::vector<Branch> branches_;
  StreamId previous_stream_ = 0;
  RecordingId previous_end_ = 0;
};

// --- handles (cudaGraph_t, cudaGraphExec_t): null for what is none, or no longer. A cudaGraphNode_t is a Node's
// address.

Graph* publish(std::unique_ptr<Graph> graph);
Executable* publish(std::unique_ptr<Executable> executable);
Graph* find_graph(const void* handle);
Executable* find_executable(const void* handle);
bool destroy_graph(const void* handle);
bool destroy_executable(const void* handle);

}  // namespace graphs PHANTORA_EXPORT
}  // namespace phantora
