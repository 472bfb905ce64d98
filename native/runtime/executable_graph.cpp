// The launch of graphs, and their update.
#include <algorithm>
#include <unordered_map>
#include <utility>

#include "phantora/config.h"
#include "phantora/graph.h"
#include "plan.h"

namespace phantora::graphs {

namespace {

bool same_shape(const Graph& one, const Graph& other);

bool same_shape(const Conditional& one, const Conditional& other) {
  return one.kind == other.kind &&
         std::equal(one.bodies.begin(), one.bodies.end(), other.bodies.begin(), other.bodies.end(),
                    [](const auto& a, const auto& b) { return same_shape(*a, *b); });
}

// Equal nodes with equal dependencies, in the same order.
bool same_shape(const Graph& one, const Graph& other) {
  if (one.nodes.size() != other.nodes.size()) return false;
  std::unordered_map<const Node*, const Node*> counterpart;
  for (size_t i = 0; i < one.nodes.size(); ++i) counterpart[one.nodes[i].get()] = other.nodes[i].get();
  auto matches = [&](const std::unique_ptr<Node>& a, const std::unique_ptr<Node>& b) {
    if (a->type != b->type || a->dependencies.size() != b->dependencies.size()) return false;
    if (a->child && !same_shape(*a->child, *b->child)) return false;
    if (a->conditional && !same_shape(*a->conditional, *b->conditional)) return false;
    return std::equal(a->dependencies.begin(), a->dependencies.end(), b->dependencies.begin(),
                      [&](const Node* x, const Node* y) { return counterpart.at(x) == y; });
  };
  return std::equal(one.nodes.begin(), one.nodes.end(), other.nodes.begin(), matches);
}

graph_memory::Usage memory_of(const Graph& graph) {
  std::vector<graph_memory::Event> events;
  for (const Node* node : in_order(graph)) {
    if (node->memory) events.push_back({node->memory, node->type == NodeType::memory_free});
  }
  return graph_memory::Usage(events);
}

}  // namespace

Executable::Executable(const Graph& graph, bool frees_first)
    : graph_(graph.clone()),
      plan_(std::make_unique<Plan>(*graph_)),
      frees_first_(frees_first),
      memory_(memory_of(*graph_)) {}

Executable::~Executable() { recorder::forget(previous_end_); }

bool Executable::update(const Graph& graph) {
  if (!same_shape(*graph_, graph)) return false;
  graph_ = graph.clone();
  plan_ = std::make_unique<Plan>(*graph_);
  memory_ = memory_of(*graph_);
  return true;
}

graph_memory::Usage::Start Executable::launch(StreamId stream) {
  using Start = graph_memory::Usage::Start;
  Start start = memory_.empty() ? Start::ready : memory_.start(frees_first_);
  if (start != Start::ready) return start;
  recorder::advance(config().launch_ns);
  if (previous_end_ != 0 && previous_stream_ != stream) await(stream, previous_end_);
  plan_->begin_launch(stream);
  {
    recorder::OneLaunch all;
    plan_->issue(stream);
  }
  recorder::forget(std::exchange(previous_end_, mark(stream)));
  previous_stream_ = stream;
  return start;
}

}  // namespace phantora::graphs
