// A graph laid out to be issued.
#pragma once
#include <memory>
#include <vector>

#include "phantora/graph.h"

namespace phantora::graphs {

// A point of a stream, in the simulation and for values; the wait of another stream for it.
RecordingId mark(StreamId stream);
void await(StreamId stream, RecordingId point);

// An order that dependencies allow. Throws std::invalid_argument if there is none.
std::vector<const Node*> in_order(const Graph& graph);

// Its nodes on branches, each a stream of its own but the first, which is the stream that the graph is issued on. A
// node follows the first of its dependencies that is the latest of a branch; the others it waits for. Bodies of
// conditional nodes are plans of their own.
class Plan {
 public:
  explicit Plan(const Graph& graph);  // throws std::invalid_argument (see Executable)
  ~Plan();
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  // In the order of the stream: all conditions are as they are at the beginning of a launch.
  void begin_launch(StreamId stream) const;
  void issue(StreamId stream) const;

 private:
  struct Choice {
    std::shared_ptr<conditions::Condition> condition;
    Conditional::Kind kind;
    std::vector<std::unique_ptr<Plan>> bodies;
  };
  struct Step {
    std::unique_ptr<const Choice> choice;  // comes before the issues
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

  static std::unique_ptr<const Choice> choice_of(const Conditional& conditional);
  static void issue(const Choice& choice, StreamId stream);
  static void repeat(const Choice& loop, StreamId stream);
  std::vector<size_t> add_steps(const Graph& graph, const std::vector<size_t>& before);
  void choose_branch(size_t index);
  void find_ends();

  std::vector<Step> steps_;
  std::vector<Branch> branches_;
};

}  // namespace phantora::graphs
