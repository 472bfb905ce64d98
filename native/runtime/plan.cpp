#include "plan.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>

#include "phantora/config.h"
#include "phantora/streams.h"
#include "phantora/values.h"

namespace phantora::graphs {

namespace {

// What CUDA takes in the body of a conditional node.
void check_body(const Graph& body) {
  for (const auto& node : body.nodes) {
    bool of_host =
        node->type == NodeType::host || node->type == NodeType::wait_event || node->type == NodeType::event_record;
    if (of_host) throw std::invalid_argument("a conditional node's body has nodes for host functions or events");
    if (node->memory) throw std::invalid_argument("a conditional node's body has nodes that allocate or free memory");
    if (node->child) check_body(*node->child);
  }
}

}  // namespace

// Of those that may come next, always the one with the fewest conditional nodes in a
// row up to it, itself among them; of these, the one that was made first. Who launches the graph may have to wait for
// what a condition is. On a GPU, nothing that does not depend on it waits; so that is given to the streams before.
std::vector<const Node*> in_order(const Graph& graph) {
  std::unordered_map<const Node*, size_t> index, missing;
  std::vector<std::vector<size_t>> dependents(graph.nodes.size());
  for (const auto& node : graph.nodes) index.emplace(node.get(), index.size());
  for (const auto& node : graph.nodes) {
    missing[node.get()] = node->dependencies.size();
    for (const Node* dependency : node->dependencies) dependents[index.at(dependency)].push_back(index.at(node.get()));
  }
  std::vector<size_t> conditionals(graph.nodes.size());
  using Next = std::pair<size_t, size_t>;  // conditionals, index
  std::priority_queue<Next, std::vector<Next>, std::greater<>> ready;
  auto make_ready = [&](size_t i) {
    if (graph.nodes[i]->conditional) ++conditionals[i];
    ready.emplace(conditionals[i], i);
  };
  for (const auto& node : graph.nodes) {
    if (node->dependencies.empty()) make_ready(index.at(node.get()));
  }
  std::vector<const Node*> order;
  while (!ready.empty()) {
    size_t next = ready.top().second;
    ready.pop();
    order.push_back(graph.nodes[next].get());
    for (size_t dependent : dependents[next]) {
      conditionals[dependent] = std::max(conditionals[dependent], conditionals[next]);
      if (--missing.at(graph.nodes[dependent].get()) == 0) make_ready(dependent);
    }
  }
  if (order.size() < graph.nodes.size()) throw std::invalid_argument("the graph's dependencies run in a circle");
  return order;
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

Plan::Plan(const Graph& graph) {
  add_steps(graph, {});
  for (size_t i = 0; i < steps_.size(); ++i) choose_branch(i);
  find_ends();
  for (size_t i = 1; i < branches_.size(); ++i) {
    branches_[i].handle = streams::create(branches_[i].device, true, 0);
    branches_[i].stream = streams::find(branches_[i].handle)->id;
  }
}

Plan::~Plan() {
  for (const Branch& branch : branches_) {
    if (branch.handle) streams::destroy(branch.handle);
  }
}

std::unique_ptr<const Plan::Choice> Plan::choice_of(const Conditional& conditional) {
  auto choice = std::make_unique<Choice>(Choice{conditional.condition, conditional.kind, {}});
  for (const auto& body : conditional.bodies) {
    check_body(*body);
    choice->bodies.push_back(std::make_unique<Plan>(*body));
  }
  return choice;
}

// The steps of a graph that comes after `before`. Returns those that nothing in it depends on.
std::vector<size_t> Plan::add_steps(const Graph& graph, const std::vector<size_t>& before) {
  std::vector<size_t> roots = before;
  if (!graph.prologue.empty()) {
    int device = graph.nodes.empty() ? 0 : graph.nodes.front()->device;
    steps_.push_back({nullptr, graph.prologue, device, before});
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
      auto choice = node->conditional && node->enabled ? choice_of(*node->conditional) : nullptr;
      steps_.push_back({std::move(choice), node->enabled ? node->issues : Issues{}, node->device, std::move(last)});
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

void Plan::choose_branch(size_t index) {
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

void Plan::find_ends() {
  std::vector<bool> needed(steps_.size());
  for (const Step& step : steps_) {
    for (size_t dependency : step.dependencies) {
      needed[dependency] = true;
      if (steps_[dependency].branch != step.branch) steps_[dependency].awaited = true;
    }
  }
  for (size_t i = 0; i < steps_.size(); ++i) steps_[i].last = !needed[i];
}

void Plan::begin_launch(StreamId stream) const {
  for (const Step& step : steps_) {
    if (!step.choice) continue;
    values::submit(stream, [condition = step.choice->condition] { condition->begin_launch(); });
    for (const auto& body : step.choice->bodies) body->begin_launch(stream);
  }
}

void Plan::issue(StreamId stream) const {
  RecordingId start = branches_.size() > 1 ? mark(stream) : 0;
  std::vector<RecordingId> ends(steps_.size());
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    StreamId own = step.branch == 0 ? stream : branches_[step.branch].stream;
    if (step.dependencies.empty() && own != stream) await(own, start);
    for (size_t dependency : step.dependencies) {
      if (steps_[dependency].branch != step.branch) await(own, ends[dependency]);
    }
    if (step.choice) issue(*step.choice, own);
    for (const auto& issue : step.issues) (*issue)(own);
    if (step.awaited || (step.last && own != stream)) ends[i] = mark(own);
  }
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (steps_[i].last && ends[i] != 0) await(stream, ends[i]);
  }
  recorder::forget(start);
  for (RecordingId end : ends) recorder::forget(end);
}

// Which bodies run has to be known here, where they are given to the stream: records cannot be added later, between
// those of calls that the host has made since. So the launch waits until the condition's value has been computed.
//
// That is no time of the simulation: the clock stands, the bodies' kernels are issued at the time of the launch, and
// start when the stream has come to them. Mostly there is nothing to wait for, as values are computed at once. Where
// one hangs on a collective, it comes when the other ranks have made theirs, for which they need nothing of this one
// but what is on its streams already. A rank that before that waits for something that this one's host would do after
// the launch waits for ever, though not on GPUs; the simulator then ends the job and says what each waits for.
void Plan::issue(const Choice& choice, StreamId stream) {
  if (choice.kind == Conditional::Kind::loop) return repeat(choice, stream);
  unsigned value = choice.condition->await(stream);
  bool is_branch = choice.kind == Conditional::Kind::branch;
  size_t body = !is_branch ? value : value != 0 ? 0 : 1;
  if (body < choice.bodies.size()) choice.bodies[body]->issue(stream);
}

void Plan::repeat(const Choice& loop, StreamId stream) {
  const uint64_t limit = config().value_loop_limit;
  for (uint64_t rounds = 0; loop.condition->await(stream) != 0; ++rounds) {
    if (limit != 0 && rounds == limit) {
      fail("a while loop in a CUDA graph (torch.while_loop, cudaGraphCondTypeWhile) has gone round " +
               std::to_string(rounds) + " times in one launch and does not end",
           "does its body ever set the condition to zero? More rounds in one launch are not emulated");
    }
    loop.bodies.front()->issue(stream);
  }
}

}  // namespace phantora::graphs
