#include "phantora/events.h"

#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "phantora/memory_pool.h"
#include "phantora/values.h"

namespace phantora::events {

namespace {

class Table {
 public:
  Handle create(int device, bool timing) {
    auto event = std::make_unique<Info>(Info{0, timing, device, nullptr});
    std::lock_guard lock(mutex_);
    Handle handle = event.get();
    events_[handle] = std::move(event);
    return handle;
  }

  bool destroy(Handle handle) {
    RecordingId recording;
    {
      std::lock_guard lock(mutex_);
      auto found = events_.find(handle);
      if (found == events_.end()) return false;
      recording = found->second->recording;
      events_.erase(found);
    }
    recorder::forget(recording);
    return true;
  }

  std::optional<Info> find(Handle handle) {
    std::lock_guard lock(mutex_);
    auto found = events_.find(handle);
    return found == events_.end() ? std::nullopt : std::optional(*found->second);
  }

  bool record(Handle handle, StreamId stream) {
    std::shared_ptr<const captures::Point> point = captures::point(stream);
    RecordingId recording = point ? 0 : recorder::next_recording();
    RecordingId previous;
    {
      std::lock_guard lock(mutex_);
      auto found = events_.find(handle);
      if (found == events_.end()) return false;
      previous = std::exchange(found->second->recording, recording);
      found->second->captured = std::move(point);
    }
    if (recording != 0) {
      recorder::record(wire::RecordKind::event_record, stream, recording);
      values::record(stream, recording);
    }
    recorder::forget(previous);
    return true;
  }

 private:
  std::mutex mutex_;
  std::map<Handle, std::unique_ptr<Info>> events_;
};

Table& table() {
  static Table* events = new Table;  // never destroyed: used by exit handlers
  return *events;
}

}  // namespace

Handle create(int device, bool timing) { return table().create(device, timing); }
bool destroy(Handle handle) { return table().destroy(handle); }
std::optional<Info> find(Handle handle) { return table().find(handle); }

bool record(Handle handle, StreamId stream, bool external) {
  if (!external || !captures::active(stream)) return table().record(handle, stream);
  if (!find(handle)) return false;
  return captures::add(stream, graphs::NodeType::event_record,
                       [handle](StreamId launched) { table().record(handle, launched); });
}

captures::Error wait(StreamId stream, int device, Handle handle, bool external) {
  std::optional<Info> event = find(handle);
  if (!event) return captures::Error::none;  // destroyed since it was captured
  if (external && captures::active(stream)) {
    captures::add(stream, graphs::NodeType::wait_event,
                  [device, handle](StreamId launched) { wait(launched, device, handle); });
    return captures::Error::none;
  }
  if (event->captured) return captures::wait(stream, device, *event->captured);
  if (event->recording == 0) return captures::Error::none;
  if (captures::forbids_wait(stream)) return captures::Error::isolation;
  recorder::record(wire::RecordKind::stream_wait, stream, event->recording);
  values::wait(stream, event->recording);
  return captures::Error::none;
}

void synchronize(RecordingId recording) {
  if (recording == 0) return;
  recorder::sync_recording(recording);
  values::drain_recording(recording);
  MemoryPool::note_synchronization();
}

bool is_complete(RecordingId recording) {
  if (recording == 0) return true;
  if (!recorder::query_recording(recording)) return false;
  if (!recorder::is_observer()) values::drain_recording(recording);  // the caller may look at what was copied
  return true;
}

}  // namespace phantora::events
