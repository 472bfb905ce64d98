#include "phantora/capture.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>

#include "phantora/values.h"

namespace phantora::captures {

namespace {

using graphs::Graph;
using graphs::Issue;
using graphs::Node;
using graphs::NodeType;

struct Capture {
  uint64_t id = 0;
  StreamId origin = 0;
  Mode mode = Mode::global;
  std::thread::id thread;
  bool valid = true;
  Graph* graph = nullptr;
  bool is_new = false;
  size_t earlier_nodes = 0;  // of a graph that there was
};

// A captured stream.
struct Branch {
  Capture* capture = nullptr;
  int device = 0;
  std::vector<Node*> dependencies;
};

thread_local Mode thread_mode = Mode::global;

void unite(std::vector<Node*>& nodes, const std::vector<Node*>& more) {
  for (Node* node : more) {
    if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
  }
}

class Table {
 public:
  bool any() const { return live_.load(std::memory_order_relaxed) != 0; }

  bool active(StreamId stream) {
    if (!any()) return false;
    std::lock_guard lock(mutex_);
    return branches_.contains(stream);
  }

  std::optional<Info> info(StreamId stream) {
    std::lock_guard lock(mutex_);
    Branch* branch = find(stream);
    if (!branch) return std::nullopt;
    const Capture& capture = *branch->capture;
    return Info{capture.id, capture.valid, capture.graph, capture.is_new, branch->dependencies};
  }

  template <typename Fill>
  bool add(StreamId stream, NodeType type, Fill fill) {
    if (!any()) return false;
    std::lock_guard lock(mutex_);
    Branch* branch = find(stream);
    if (!branch) return false;
    fill(*extend(*branch, type));
    return true;
  }

  // Where several branches have met and nothing has come yet, an empty node takes it.
  bool attach(StreamId stream, Issue issue) {
    if (!any()) return false;
    std::lock_guard lock(mutex_);
    Branch* branch = find(stream);
    if (!branch) return false;
    if (branch->dependencies.empty()) {
      branch->capture->graph->prologue.push_back(std::make_shared<const Issue>(std::move(issue)));
    } else if (branch->dependencies.size() > 1) {
      extend(*branch, NodeType::empty)->add(std::move(issue));
    } else {
      branch->dependencies.front()->add(std::move(issue));
    }
    return true;
  }

  Error begin(StreamId stream, int device, Mode mode, Graph* into, std::vector<Node*> dependencies) {
    std::lock_guard lock(mutex_);
    if (find(stream)) return Error::illegal_state;
    auto capture = std::make_unique<Capture>();
    capture->id = ++last_id_;
    capture->origin = stream;
    capture->mode = mode;
    capture->thread = std::this_thread::get_id();
    capture->is_new = into == nullptr;
    capture->graph = into ? into : graphs::publish(std::make_unique<Graph>());
    capture->earlier_nodes = capture->graph->nodes.size();
    branches_[stream] = {capture.get(), device, std::move(dependencies)};
    captures_[capture->id] = std::move(capture);
    live_.fetch_add(1, std::memory_order_relaxed);
    return Error::none;
  }

  Error end(StreamId stream, Graph** graph) {
    std::lock_guard lock(mutex_);
    Branch* branch = find(stream);
    if (!branch) return Error::illegal_state;
    Capture& capture = *branch->capture;
    if (capture.origin != stream) return Error::unmatched;
    if (capture.mode != Mode::relaxed && capture.thread != std::this_thread::get_id()) return Error::wrong_thread;
    Error error = !capture.valid ? Error::invalidated : is_joined(*branch) ? Error::none : Error::unjoined;
    *graph = error == Error::none ? capture.graph : nullptr;
    forget(capture, error == Error::none);
    return error;
  }

  // The stream goes. Nobody can end what began on it; what it joined cannot become a graph.
  void abandon(StreamId stream) {
    if (!any()) return;
    std::lock_guard lock(mutex_);
    Branch* branch = find(stream);
    if (!branch) return;
    branch->capture->valid = false;
    if (branch->capture->origin == stream) {
      forget(*branch->capture, false);
    } else {
      branches_.erase(stream);
    }
  }

  Error set_dependencies(StreamId stream, std::vector<Node*> nodes, bool in_addition) {
    std::lock_guard lock(mutex_);
    Branch* branch = find(stream);
    if (!branch) return Error::illegal_state;
    if (!branch->capture->valid) return Error::invalidated;
    if (!in_addition) branch->dependencies.clear();
    unite(branch->dependencies, nodes);
    return Error::none;
  }

  std::shared_ptr<const Point> point(StreamId stream) {
    if (!any()) return nullptr;
    std::lock_guard lock(mutex_);
    Branch* branch = find(stream);
    return branch ? std::make_shared<const Point>(Point{branch->capture->id, branch->dependencies}) : nullptr;
  }

  Error wait(StreamId stream, int device, const Point& point) {
    std::lock_guard lock(mutex_);
    auto found = captures_.find(point.capture);
    if (found == captures_.end()) return Error::captured_event;  // that capture has ended
    Capture* capture = found->second.get();
    Branch* branch = find(stream);
    if (branch && branch->capture != capture) {
      branch->capture->valid = capture->valid = false;
      return Error::merge;
    }
    if (!branch) branch = &(branches_[stream] = {capture, device, {}});
    unite(branch->dependencies, point.nodes);
    return Error::none;
  }

  bool forbids_wait(StreamId stream) {
    if (!any()) return false;
    std::lock_guard lock(mutex_);
    Branch* branch = find(stream);
    if (branch) branch->capture->valid = false;
    return branch != nullptr;
  }

  // A thread whose mode is relaxed may do as it likes. Captures of other threads only count if both are global; whether
  // they have begun depends on how threads take turns, so they are let pass here.
  bool forbids_unsafe() {
    if (!any() || thread_mode == Mode::relaxed) return false;
    std::lock_guard lock(mutex_);
    bool forbidden = false;
    for (auto& [id, capture] : captures_) {
      if (capture->mode == Mode::relaxed || capture->thread != std::this_thread::get_id()) continue;
      capture->valid = false;
      forbidden = true;
    }
    return forbidden;
  }

 private:
  Branch* find(StreamId stream) {
    auto found = branches_.find(stream);
    return found == branches_.end() ? nullptr : &found->second;
  }

  void forget(const Capture& capture, bool keeps_graph) {
    if (!keeps_graph && capture.is_new) graphs::destroy_graph(capture.graph);
    std::erase_if(branches_, [&](const auto& entry) { return entry.second.capture == &capture; });
    captures_.erase(capture.id);
    live_.fetch_sub(1, std::memory_order_relaxed);
  }

  static Node* extend(Branch& branch, NodeType type) {
    Node* node = branch.capture->graph->add(type, branch.device, std::move(branch.dependencies));
    branch.dependencies = {node};
    return node;
  }

  // Every new node leads to one of those that the origin stream has come to.
  static bool is_joined(const Branch& origin) {
    std::vector<const Node*> needed(origin.dependencies.begin(), origin.dependencies.end());
    const auto& nodes = origin.capture->graph->nodes;
    for (const auto& node : nodes) needed.insert(needed.end(), node->dependencies.begin(), node->dependencies.end());
    std::sort(needed.begin(), needed.end());
    return std::all_of(nodes.begin() + static_cast<std::ptrdiff_t>(origin.capture->earlier_nodes), nodes.end(),
                       [&](const auto& node) { return std::binary_search(needed.begin(), needed.end(), node.get()); });
  }

  std::atomic<int> live_{0};
  std::mutex mutex_;
  uint64_t last_id_ = 0;
  std::map<uint64_t, std::unique_ptr<Capture>> captures_;
  std::unordered_map<StreamId, Branch> branches_;
};

Table& table() {
  static Table* captures = new Table;  // never destroyed: used by exit handlers
  return *captures;
}

// Either makes unknown what is there.
bool add_memory(StreamId stream, NodeType type, graph_memory::AllocationPtr memory) {
  return table().add(stream, type, [&](Node& node) {
    node.memory = memory;
    node.add([memory = std::move(memory)](StreamId launched) {
      values::submit(launched, [memory] { values::mark_unknown(memory->pointer(), memory->bytes()); });
    });
  });
}

}  // namespace

bool any() { return table().any(); }
bool active(StreamId stream) { return table().active(stream); }
std::optional<Info> info(StreamId stream) { return table().info(stream); }

bool add(StreamId stream, NodeType type, Issue issue) {
  return table().add(stream, type, [&](Node& node) { node.add(std::move(issue)); });
}

bool add(StreamId stream, std::shared_ptr<const Graph> child) {
  return table().add(stream, NodeType::graph, [&](Node& node) { node.child = std::move(child); });
}

bool add(StreamId stream, std::shared_ptr<const graphs::Conditional> conditional) {
  return table().add(stream, NodeType::conditional, [&](Node& node) { node.conditional = std::move(conditional); });
}

bool allocate(StreamId stream, graph_memory::AllocationPtr memory) {
  return add_memory(stream, NodeType::memory_alloc, std::move(memory));
}
bool free(StreamId stream, graph_memory::AllocationPtr memory) {
  return add_memory(stream, NodeType::memory_free, std::move(memory));
}

bool attach(StreamId stream, Issue issue) { return table().attach(stream, std::move(issue)); }

Error begin(StreamId stream, int device, Mode mode, Graph* into, std::vector<Node*> dependencies) {
  return table().begin(stream, device, mode, into, std::move(dependencies));
}
Error end(StreamId stream, Graph** graph) { return table().end(stream, graph); }
void abandon(StreamId stream) { table().abandon(stream); }
Error set_dependencies(StreamId stream, std::vector<Node*> nodes, bool in_addition) {
  return table().set_dependencies(stream, std::move(nodes), in_addition);
}

std::shared_ptr<const Point> point(StreamId stream) { return table().point(stream); }
Error wait(StreamId stream, int device, const Point& point) { return table().wait(stream, device, point); }

bool forbids_wait(StreamId stream) { return table().forbids_wait(stream); }
bool forbids_unsafe() { return table().forbids_unsafe(); }
Mode exchange_mode(Mode mode) { return std::exchange(thread_mode, mode); }

}  // namespace phantora::captures
