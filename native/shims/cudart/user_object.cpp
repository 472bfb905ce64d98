// Objects that callers hand over to graphs, which destroy them with their last user.
#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "cudart/error.h"
#include "cudart/graph.h"

namespace phantora::cudart {

namespace {

constexpr unsigned move_to_graph = 1;  // cudaGraphUserObjectMove

// The references that callers hold; graphs hold more.
class UserObjects {
 public:
  UserObject create(void* object, void (*destroy)(void*), unsigned count) {
    graphs::Keepsake keepsake(object, destroy);
    std::lock_guard lock(mutex_);
    UserObject handle = reinterpret_cast<UserObject>(++last_);
    held_[handle].assign(count, std::move(keepsake));
    return handle;
  }

  bool retain(UserObject handle, unsigned count) {
    std::lock_guard lock(mutex_);
    auto found = held_.find(handle);
    if (found == held_.end()) return false;
    found->second.insert(found->second.end(), count, graphs::Keepsake(found->second.front()));
    return true;
  }

  // The references that went; none if the callers did not hold so many. They end with what is returned.
  std::vector<graphs::Keepsake> release(UserObject handle, unsigned count) {
    std::lock_guard lock(mutex_);
    auto found = held_.find(handle);
    if (found == held_.end() || found->second.size() < count) return {};
    std::vector<graphs::Keepsake>& references = found->second;
    auto first = references.end() - count;
    std::vector<graphs::Keepsake> released(std::make_move_iterator(first), std::make_move_iterator(references.end()));
    references.erase(first, references.end());
    if (references.empty()) held_.erase(found);
    return released;
  }

  graphs::Keepsake find(UserObject handle) {
    std::lock_guard lock(mutex_);
    auto found = held_.find(handle);
    return found == held_.end() ? nullptr : found->second.front();
  }

 private:
  std::mutex mutex_;
  uintptr_t last_ = 0;
  std::map<UserObject, std::vector<graphs::Keepsake>> held_;
};

UserObjects& user_objects() {
  static UserObjects* table = new UserObjects;  // never destroyed: used by exit handlers
  return *table;
}

}  // namespace

extern "C" {

Status cudaUserObjectCreate(UserObject* handle, void* object, void (*destroy)(void*), unsigned count, unsigned) {
  if (!handle || !destroy || count == 0) return done(Status::invalid_value);
  *handle = user_objects().create(object, destroy, count);
  return Status::success;
}

Status cudaUserObjectRetain(UserObject handle, unsigned count) {
  return done(user_objects().retain(handle, count) ? Status::success : Status::invalid_value);
}

Status cudaUserObjectRelease(UserObject handle, unsigned count) {
  return done(user_objects().release(handle, count).empty() ? Status::invalid_value : Status::success);
}

Status cudaGraphRetainUserObject(GraphHandle graph, UserObject handle, unsigned count, unsigned flags) {
  graphs::Graph* target = graphs::find_graph(graph);
  graphs::Keepsake object = user_objects().find(handle);
  if (!target || !object || count == 0) return done(Status::invalid_value);
  if ((flags & move_to_graph) && user_objects().release(handle, count).empty()) return done(Status::invalid_value);
  target->keepsakes.insert(target->keepsakes.end(), count, object);
  return Status::success;
}

Status cudaGraphReleaseUserObject(GraphHandle graph, UserObject handle, unsigned count) {
  graphs::Graph* target = graphs::find_graph(graph);
  graphs::Keepsake object = user_objects().find(handle);
  if (!target || !object) return done(Status::invalid_value);
  for (unsigned i = 0; i < count; ++i) {
    auto found = std::find(target->keepsakes.begin(), target->keepsakes.end(), object);
    if (found == target->keepsakes.end()) return done(Status::invalid_value);
    target->keepsakes.erase(found);
  }
  return Status::success;
}

}  // extern "C"

}  // namespace phantora::cudart
