// How a graph is laid out on branches, and launched.
#include <algorithm>
#include <queue>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include "phantora/config.h"
#include "phantora/graph.h"
#include "phantora/streams.h"
#include "phantora/values.h"

namespace phantora::graphs {

namespace {

// An order that dependencies allow: of those that may come next, always the one that was made first.
std::vector<const Node*> in_order(const Graph& graph) {
  std::unordered_map<const Node*, size_t> index, missing;
  std::vector<std::vector<size_t>> dependents(graph.nodes.size());
  for (const auto& node : graph.nodes) index.emplace(node.get(), index.size());
  for (const auto& node : graph.nodes) {
    missing[node.get()] = node->dependencies.size();
    for (const Node* dependency : node->dependencies) dependents[index.at(dependency)].push_back(index.at(node.get()));
  }
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (const auto& node : graph.nodes) {
    if (node->dependencies.empty()) ready.push(index.at(node.get()));
  }
  std::vector<const Node*> order;
  while (!ready.empty()) {
    size_t next = ready.top();
    ready.pop();
    order.push_back(graph.nodes[next].get());
    for (size_t dependent : dependents[next]) {
      if (--missing.at(graph.nodes[dependent].get()) == 0) ready.push(dependent);
    }
  }
  if (order.size() < graph.nodes.size()) throw std::invalid_argument("the graph's dependencies run in a circle");
  return order;
}

// Equal nodes with equal dependencies, in the same order.
bool same_shape(const Graph& one, const Graph& other) {
  if (one.nodes.size() != other.nodes.size()) return false;
  std::unordered_map<const Node*, const Node*> counterpart;
  for (size_t i = 0; i < one.nodes.size(); ++i) counterpart[one.nodes[i].get()] = other.nodes[i].get();
  auto matches = [&](const std::unique_ptr<Node>& a, const std::unique_ptr<Node>& b) {
    if (a->type != b->type || a->dependencies.size() != b->dependencies.size()) return false;
    if (a->child && !same_shape(*a->child, *b->child)) return false;
    return std::equal(a->dependencies.begin(), a->dependencies.end(), b->dependencies.begin(),
                      [&](const Node* x, const Node* y) { return counterpart.at(x) == y; });
  };
  return std::equal(one.nodes.begin(), one.nodes.end(), other.nodes.begin(), matches);
}

RecordingId mark(StreamId stream) {
  RecordingId recording = recorder::next_recording();
  recorder::record(wire::RecordKind::event_record, stream, recording);
  values::record(stream, recording);
  return recording;
}

void await(StreamId stream, RecordingId recording) {
  recorder::record(wire::RecordKind::stream_wait, stream, recording);
  values::wait(stream, recording);
}

}  // namespace

Executable::Executable(const Graph& graph) { lay_out(graph); }

Executable::~Executable() {
  for (const Branch& branch : branches_) {
    if (branch.handle) streams::destroy(branch.handle);
  }
  recorder::forget(previous_end_);
}

bool Executable::update(const Graph& graph) {
  if (!same_shape(*graph_, graph)) return false;
  std::vector<Branch> branches = std::move(branches_);
  lay_out(graph);
  for (const Branch& branch : branches) {
    if (branch.handle) streams::destroy(branch.handle);
  }
  return true;
}

void Executable::lay_out(const Graph& graph) {
  graph_ = graph.clone();
  steps_.clear();
  branches_.clear();
  add_steps(*graph_, {});
  for (size_t i = 0; i < steps_.size(); ++i) choose_branch(i);
  std::vector<bool> needed(steps_.size());
  for (Step& step : steps_) {
    for (size_t dependency : step.dependencies) {
      needed[dependency] = true;
      if (steps_[dependency].branch != step.branch) steps_[dependency].awaited = true;
    }
  }
  for (size_t i = 0; i < steps_.size(); ++i) steps_[i].last = !needed[i];
  for (size_t i = 1; i < branches_.size(); ++i) {
    branches_[i].handle = streams::create(branches_[i].device, true, 0);
    branches_[i].stream = streams::find(branches_[i].handle)->id;
  }
}

// The steps of a graph that comes after `before`. Returns those that nothing in it depends on.
std::vector<size_t> Executable::add_steps(const Graph& graph, const std::vector<size_t>& before) {
  std::vector<size_t> roots = before;
  if (!graph.prologue.empty()) {
    int device = graph.nodes.empty() ? 0 : graph.nodes.front()->device;
    steps_.push_back({graph.prologue, device, before});
    roots = {steps_.size() - 1};
  }
  std::unordered_map<const Node*, std::vector<size_t>> ends;  // of each node
  std::vector<size_t> open = roots;
  for (const Node* node : in_order(graph)) {
    std::vector<size_t> dependencies;
    for (const Node* dependency : node->dependencies) {
      const std::vector<size_t>& steps = ends.at(dependency);
      dependencies.insert(dependencies.end(), steps.begin(), steps.end());
    }
    if (dependencies.empty()) dependencies = roots;
    std::vector<size_t> last = dependencies;
    if (node->child && node->enabled) last = add_steps(*node->child, dependencies);
    if (!node->child || !node->issues.empty()) {
      steps_.push_back({node->enabled ? node->issues : Issues{}, node->device, std::move(last)});
      last = {steps_.size() - 1};
    }
    std::erase_if(open, [&](size_t step) {
      return std::find(dependencies.begin(), dependencies.end(), step) != dependencies.end();
    });
    open.insert(open.end(), last.begin(), last.end());
    ends[node] = std::move(last);
  }
  return open;
}

void Executable::choose_branch(size_t index) {
  Step& step = steps_[index];
  for (size_t dependency : step.dependencies) {
    Branch& branch = branches_[steps_[dependency].branch];
    if (branch.latest != dependency || branch.device != step.device) continue;
    branch.latest = index;
    step.branch = steps_[dependency].branch;
    return;
  }
  step.branch = branches_.size();
  branches_.push_back({nullptr, 0, step.device, index});
}

void Executable::launch(StreamId stream) {
  recorder::advance(config().launch_ns);
  if (previous_end_ != 0 && previous_stream_ != stream) await(stream, previous_end_);
  {
    recorder::OneLaunch all;
    issue(stream);
  }
  recorder::forget(std::exchange(previous_end_, mark(stream)));
  previous_stream_ = stream;
}

void Executable::issue(StreamId stream) {
  RecordingId start = branches_.size() > 1 ? mark(stream) : 0;
  std::vector<RecordingId> ends(steps_.size());
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    StreamId own = step.branch == 0 ? stream : branches_[step.branch].stream;
    if (step.dependencies.empty() && own != stream) await(own, start);
    for (size_t dependency : step.dependencies) {
      if (steps_[dependency].branch != step.branch) await(own, ends[dependency]);
    }
    for (const auto& issue : step.issues) (*issue)(own);
    if (step.awaited || (step.last && own != stream)) ends[i] = mark(own);
  }
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (steps_[i].last && ends[i] != 0) await(stream, ends[i]);
  }
  recorder::forget(start);
  for (RecordingId end : ends) recorder::forget(end);
}

}  // namespace phantora::graphs
