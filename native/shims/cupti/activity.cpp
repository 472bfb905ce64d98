// The activity API: what the runtime has noted of calls and work, as records in the profiler's buffers.
#include "phantora/activity.h"

#include <unistd.h>

#include <cstring>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>

#include "cupti/types.h"
#include "phantora/capi.h"

namespace phantora::cupti {

namespace {

constexpr uint32_t first_stream = 7;  // CUPTI's number for a context's default stream
constexpr uint32_t first_context = 1;

uint64_t unix_ns(int64_t virtual_ns) { return static_cast<uint64_t>(phantora_epoch_ns() + virtual_ns); }

uint32_t context_of(int device) { return first_context + static_cast<uint32_t>(device); }

size_t bytes_of(Kind kind) {
  switch (kind) {
    case Kind::memcpy:
      return sizeof(MemcpyRecord);
    case Kind::memset:
      return sizeof(MemsetRecord);
    case Kind::kernel:
    case Kind::concurrent_kernel:
      return sizeof(KernelRecord);
    case Kind::runtime:
      return sizeof(ApiRecord);
    case Kind::external_correlation:
      return sizeof(ExternalRecord);
  }
  return 0;
}

CopyKind copy_kind(std::string_view kind) {
  if (kind == "h2d") return CopyKind::to_device;
  if (kind == "d2h") return CopyKind::to_host;
  if (kind == "d2d") return CopyKind::on_device;
  if (kind == "p2p") return CopyKind::between_devices;
  return CopyKind::on_host;
}

// Of a copy within host memory it is not noted.
MemoryKind side(const activity::Done& copy, char letter) {
  if (letter != 'h') return MemoryKind::device;
  if (copy.copy_kind == "h2h") return MemoryKind::unknown;
  return copy.copy_is_pageable ? MemoryKind::pageable : MemoryKind::pinned;
}

// The profiler's buffers, filled one after the other. A profiler that gives none loses records, which it can ask about.
class Buffers {
 public:
  void use(RequestBuffer request, CompleteBuffer complete) {
    std::lock_guard lock(mutex_);
    request_ = request;
    complete_ = complete;
  }

  // Kineto flushes only while one of its buffers is out.
  void open() {
    std::lock_guard lock(mutex_);
    if (!data_ && request_) ask_for_buffer();
  }

  void flush() {
    std::lock_guard lock(mutex_);
    give_back();
  }

  template <typename Record>
  void add(const Record& record) {
    std::lock_guard lock(mutex_);
    if (data_ && filled_ + sizeof record > bytes_) give_back();
    if (!data_ && request_) ask_for_buffer();
    if (!data_ || filled_ + sizeof record > bytes_) {
      ++dropped_;
      return;
    }
    std::memcpy(data_ + filled_, &record, sizeof record);
    filled_ += sizeof record;
  }

  size_t take_dropped() {
    std::lock_guard lock(mutex_);
    return std::exchange(dropped_, 0);
  }

 private:
  void ask_for_buffer() {
    size_t most_records = 0;
    request_(&data_, &bytes_, &most_records);
    filled_ = 0;
  }

  void give_back() {
    if (data_) complete_(nullptr, 0, std::exchange(data_, nullptr), bytes_, filled_);
  }

  std::recursive_mutex mutex_;  // the profiler's callbacks may ask what was dropped
  RequestBuffer request_ = nullptr;
  CompleteBuffer complete_ = nullptr;
  uint8_t* data_ = nullptr;
  size_t bytes_ = 0;
  size_t filled_ = 0;
  size_t dropped_ = 0;
};

class Recording {
 public:
  Buffers& buffers() { return buffers_; }

  void enable(Kind kind) {
    {
      std::lock_guard lock(mutex_);
      if (enabled_.empty()) wanted_.clear();
      enabled_.insert(kind);
      wanted_.insert(kind);
    }
    activity::start();
    buffers_.open();
  }

  void disable(Kind kind) {
    std::lock_guard lock(mutex_);
    enabled_.erase(kind);
    if (enabled_.empty()) activity::stop();
  }

  // What is under way on a device stays for the next time.
  void flush() {
    activity::Finished finished = activity::take_finished();
    for (const activity::Made& made : finished.calls) add_call(made);
    for (const activity::Done& done : finished.work) add_work(done);
    buffers_.flush();
    if (is_on()) buffers_.open();
  }

 private:
  bool is_on() {
    std::lock_guard lock(mutex_);
    return !enabled_.empty();
  }

  bool wants(Kind kind) {
    std::lock_guard lock(mutex_);
    return wanted_.contains(kind);
  }

  // In front of what they belong to, in the same buffer unless it is full.
  void add_externals(uint32_t correlation, const activity::Externals& externals) {
    if (!wants(Kind::external_correlation)) return;
    for (const auto& [kind, number] : externals) {
      buffers_.add(ExternalRecord{.external_kind = kind, .external = number, .correlation = correlation});
    }
  }

  void add_call(const activity::Made& made) {
    if (!wants(Kind::runtime)) return;
    add_externals(made.correlation, made.externals);
    buffers_.add(ApiRecord{.function = static_cast<uint32_t>(made.api),
                           .start = unix_ns(made.start_ns),
                           .end = unix_ns(made.end_ns),
                           .process = static_cast<uint32_t>(getpid()),
                           .thread = made.thread,
                           .correlation = made.correlation});
  }

  void add_work(const activity::Done& done) {
    add_externals(done.correlation, done.externals);
    if (done.copy_kind.empty()) {
      KernelRecord record;
      std::copy_n(done.grid, 3, record.grid);
      std::copy_n(done.block, 3, record.block);
      record.registers = static_cast<uint16_t>(done.resources.registers);
      record.static_shared_bytes = done.resources.static_shared_bytes;
      record.dynamic_shared_bytes = done.resources.dynamic_shared_bytes;
      record.name = done.name;
      record.completed = unix_ns(done.end_ns);
      add(record, done);
    } else if (done.copy_kind == "memset") {
      add(MemsetRecord{.bytes = done.copy_bytes}, done);
    } else {
      add(MemcpyRecord{.copy = copy_kind(done.copy_kind),
                       .source = side(done, done.copy_kind.front()),
                       .destination = side(done, done.copy_kind.back()),
                       .bytes = done.copy_bytes},
          done);
    }
  }

  template <typename Record>
  void add(Record record, const activity::Done& done) {
    bool wanted = wants(record.kind) || (record.kind == Kind::concurrent_kernel && wants(Kind::kernel));
    if (!wanted) return;
    record.start = unix_ns(done.start_ns);
    record.end = unix_ns(done.end_ns);
    record.device = static_cast<uint32_t>(done.device);
    record.context = context_of(done.device);
    record.stream = first_stream + done.stream;
    record.correlation = done.correlation;
    buffers_.add(record);
  }

  std::mutex mutex_;
  std::set<Kind> enabled_;
  std::set<Kind> wanted_;  // enabled since none was: what is flushed after the end still belongs to them
  Buffers buffers_;
};

Recording& recording() {
  static Recording* instance = new Recording;  // never destroyed: profilers flush at exit
  return *instance;
}

}  // namespace

extern "C" {

Result cuptiActivityRegisterCallbacks(RequestBuffer request, CompleteBuffer complete) {
  if (!request || !complete) return Result::invalid_parameter;
  recording().buffers().use(request, complete);
  return Result::success;
}

// Kinds that nothing of ours belongs to are enabled in vain, as on a GPU where nothing of them happens.
Result cuptiActivityEnable(Kind kind) {
  recording().enable(kind);
  return Result::success;
}

Result cuptiActivityDisable(Kind kind) {
  recording().disable(kind);
  return Result::success;
}

Result cuptiActivityFlushAll(uint32_t) {
  recording().flush();
  return Result::success;
}

Result cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid_bytes, uint8_t** record) {
  if (!buffer || !record) return Result::invalid_parameter;
  uint8_t* next = *record ? *record + bytes_of(*reinterpret_cast<Kind*>(*record)) : buffer;
  if (next >= buffer + valid_bytes) return Result::max_limit_reached;
  *record = next;
  return Result::success;
}

Result cuptiActivityGetNumDroppedRecords(void*, uint32_t, size_t* dropped) {
  if (!dropped) return Result::invalid_parameter;
  *dropped = recording().buffers().take_dropped();
  return Result::success;
}

Result cuptiActivityPushExternalCorrelationId(int kind, uint64_t number) {
  activity::push_external(kind, number);
  return Result::success;
}

Result cuptiActivityPopExternalCorrelationId(int kind, uint64_t* last) {
  return activity::pop_external(kind, last) ? Result::success : Result::queue_empty;
}

Result cuptiGetTimestamp(uint64_t* ns) {
  if (!ns) return Result::invalid_parameter;
  *ns = unix_ns(phantora_now_ns());
  return Result::success;
}

}  // extern "C"

}  // namespace phantora::cupti
