#include "phantora/streams.h"

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "phantora/capture.h"
#include "phantora/device.h"
#include "phantora/memory_pool.h"
#include "phantora/values.h"

namespace phantora::streams {

namespace {

// Work on the legacy default stream starts after all work given before to the device's blocking streams, and theirs
// after its. `issued` counts submissions, so that streams with nothing new need not be ordered again.
struct Stream {
  Info info;
  uint64_t issued = 0;
  uint64_t legacy_seen = 0;     // of the legacy stream, by this one
  uint64_t seen_by_legacy = 0;  // of this one
};

class Table {
 public:
  Handle create(int device, bool non_blocking, int priority) {
    std::lock_guard lock(mutex_);
    auto stream = std::make_unique<Stream>();
    stream->info = define(device, non_blocking, priority);
    Stream* key = stream.get();
    if (!non_blocking) blocking_.push_back(key);
    created_[key] = std::move(stream);
    return key;
  }

  bool destroy(Handle handle) {
    std::lock_guard lock(mutex_);
    auto found = created_.find(handle);
    if (found == created_.end()) return false;
    captures::abandon(found->second->info.id);
    std::erase(blocking_, found->second.get());
    created_.erase(found);
    return true;
  }

  std::optional<Info> find(Handle handle) {
    std::lock_guard lock(mutex_);
    Stream* stream = lookup(handle);
    return stream ? std::optional(stream->info) : std::nullopt;
  }

  int device_of(StreamId stream) {
    std::lock_guard lock(mutex_);
    return devices_.at(stream);
  }

  std::optional<StreamId> enter(Handle handle) {
    std::lock_guard lock(mutex_);
    Stream* stream = lookup(handle);
    if (!stream) return std::nullopt;
    if (captures::active(stream->info.id)) return stream->info.id;
    if (!stream->info.non_blocking && !blocking_.empty()) order_implicitly(*stream);
    ++stream->issued;
    return stream->info.id;
  }

 private:
  Info define(int device, bool non_blocking, int priority) {
    device::note_use(device);
    Info info{static_cast<StreamId>(devices_.size()), device, priority, non_blocking};
    recorder::define_stream(info.id, device::physical(device), priority);
    devices_.push_back(device);
    return info;
  }

  Stream* lookup(Handle handle) {
    if (handle == nullptr || handle == legacy()) return default_stream();
    if (handle == per_thread()) return per_thread_stream();
    auto found = created_.find(handle);
    return found == created_.end() ? nullptr : found->second.get();
  }

  Stream* default_stream() {
    std::unique_ptr<Stream>& slot = legacy_[device::current()];
    if (!slot) {
      slot = std::make_unique<Stream>();
      slot->info = define(device::current(), false, 0);
    }
    return slot.get();
  }

  // Blocking, like a stream made by cudaStreamCreate; kept after its thread's end, as recordings may name it.
  Stream* per_thread_stream() {
    thread_local std::map<int, Stream*> streams;
    Stream*& slot = streams[device::current()];
    if (!slot) {
      auto stream = std::make_unique<Stream>();
      stream->info = define(device::current(), false, 0);
      slot = stream.get();
      blocking_.push_back(slot);
      per_thread_.push_back(std::move(stream));
    }
    return slot;
  }

  // CUDA calls it cudaErrorStreamCaptureImplicit, an error that no program goes on from.
  [[noreturn]] static void refuse_to_wait_for_capture() {
    fail("work was given to the legacy default stream, which would have to wait for a blocking stream that is captured",
         "capture on a stream made with cudaStreamNonBlocking, or issue the work on another stream");
  }

  void order_implicitly(Stream& stream) {
    int device = stream.info.device;
    auto found = legacy_.find(device);
    Stream* legacy = found == legacy_.end() ? nullptr : found->second.get();
    if (&stream != legacy) {
      if (legacy && stream.legacy_seen < legacy->issued) {
        order(legacy->info.id, stream.info.id);
        stream.legacy_seen = legacy->issued;
      }
      return;
    }
    for (Stream* other : blocking_) {
      if (other->info.device != device) continue;
      if (captures::active(other->info.id)) refuse_to_wait_for_capture();
      if (other->seen_by_legacy >= other->issued) continue;
      order(other->info.id, stream.info.id);
      other->seen_by_legacy = other->issued;
    }
  }

  std::mutex mutex_;
  std::vector<int> devices_;                       // by stream id
  std::map<int, std::unique_ptr<Stream>> legacy_;  // by device
  std::map<Handle, std::unique_ptr<Stream>> created_;
  std::vector<std::unique_ptr<Stream>> per_thread_;
  std::vector<Stream*> blocking_;  // without the legacy ones
};

Table& table() {
  static Table* streams = new Table;  // never destroyed: used by exit handlers
  return *streams;
}

}  // namespace

Handle create(int device, bool non_blocking, int priority) { return table().create(device, non_blocking, priority); }
bool destroy(Handle handle) { return table().destroy(handle); }
std::optional<Info> find(Handle handle) { return table().find(handle); }
int device_of(StreamId stream) { return table().device_of(stream); }
std::optional<StreamId> enter(Handle handle) { return table().enter(handle); }

StreamId enter_or_fail(Handle handle, const char* function) {
  if (std::optional<StreamId> stream = enter(handle)) return *stream;
  fail(std::string(function) + " was given a stream that does not exist (handle " +
           std::to_string(reinterpret_cast<uintptr_t>(handle)) + ")",
       "was the stream destroyed, or does it belong to another process?");
}

void synchronize(StreamId stream) {
  recorder::sync_stream(stream);
  values::drain_stream(stream);
  MemoryPool::note_synchronization();
}

bool is_idle(StreamId stream) {
  if (!recorder::query_stream(stream)) return false;
  if (!recorder::is_observer()) values::drain_stream(stream);  // the caller may look at what was copied
  return true;
}

void order(StreamId before, StreamId stream) {
  RecordingId recording = recorder::next_recording();
  recorder::record(wire::RecordKind::event_record, before, recording);
  values::record(before, recording);
  recorder::record(wire::RecordKind::stream_wait, stream, recording);
  values::wait(stream, recording);
  recorder::forget(recording);
}

}  // namespace phantora::streams
