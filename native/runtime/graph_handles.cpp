#include <map>
#include <mutex>

#include "phantora/graph.h"

namespace phantora::graphs {

namespace {

struct Handles {
  std::mutex mutex;
  std::map<const void*, std::unique_ptr<Graph>> graphs;
  std::map<const void*, std::unique_ptr<Executable>> executables;
  std::map<const void*, std::weak_ptr<Graph>> parts;  // of nodes
};

Handles& handles() {
  static Handles* tables = new Handles;  // never destroyed: used by exit handlers
  return *tables;
}

template <typename Object>
Object* keep(std::map<const void*, std::unique_ptr<Object>>& table, std::unique_ptr<Object> object) {
  std::lock_guard lock(handles().mutex);
  Object* handle = object.get();
  table[handle] = std::move(object);
  return handle;
}

template <typename Object>
Object* find(const std::map<const void*, std::unique_ptr<Object>>& table, const void* handle) {
  std::lock_guard lock(handles().mutex);
  auto found = table.find(handle);
  return found == table.end() ? nullptr : found->second.get();
}

// What it kept alive goes when the lock is free.
template <typename Object>
bool drop(std::map<const void*, std::unique_ptr<Object>>& table, const void* handle) {
  std::unique_ptr<Object> dropped;
  std::lock_guard lock(handles().mutex);
  auto found = table.find(handle);
  if (found == table.end()) return false;
  dropped = std::move(found->second);
  table.erase(found);
  return true;
}

}  // namespace

Graph* publish(std::unique_ptr<Graph> graph) { return keep(handles().graphs, std::move(graph)); }
Executable* publish(std::unique_ptr<Executable> executable) {
  return keep(handles().executables, std::move(executable));
}

Graph* lend(const std::shared_ptr<Graph>& part) {
  std::lock_guard lock(handles().mutex);
  std::erase_if(handles().parts, [](const auto& entry) { return entry.second.expired(); });
  handles().parts[part.get()] = part;
  return part.get();
}

Graph* find_graph(const void* handle) {
  if (Graph* graph = find(handles().graphs, handle)) return graph;
  std::lock_guard lock(handles().mutex);
  auto found = handles().parts.find(handle);
  return found == handles().parts.end() ? nullptr : found->second.lock().get();
}

Executable* find_executable(const void* handle) { return find(handles().executables, handle); }

bool destroy_graph(const void* handle) { return drop(handles().graphs, handle); }
bool destroy_executable(const void* handle) { return drop(handles().executables, handle); }

}  // namespace phantora::graphs
