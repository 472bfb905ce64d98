#include "phantora/values.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <initializer_list>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "phantora/capture.h"
#include "phantora/config.h"
#include "phantora/counters.h"
#include "phantora/launch.h"
#include "phantora/memory.h"
#include "state_map.h"
#include "unknown_reads.h"
#include "value_queue.h"
#include "zero_pages.h"

namespace phantora::values {
namespace {

constexpr size_t reported_sites = 50;

// All that this file keeps. Never destroyed: exit handlers and the reader thread may still come by.
struct Store {
  std::recursive_mutex mutex;
  std::condition_variable_any drained;
  StateMap ranges;
  ValueQueue queue;
  UnknownReads unknown_reads;
};

std::string pack_unknown_reads();

Store& store() {
  static Store* store = [] {
    recorder::farewell([](auto contribute) { contribute("unknown_reads", pack_unknown_reads()); });
    return new Store;
  }();
  return *store;
}

using Guard = std::unique_lock<std::recursive_mutex>;

std::string pack_unknown_reads() {
  Guard guard(store().mutex);
  auto sites = store().unknown_reads.summary(reported_sites);
  wire::Pack pack;
  pack.array(static_cast<uint32_t>(sites.size()));
  for (const auto& site : sites) {
    pack.map(4).text("op").text(site.op).text("site").text(site.place);
    pack.text("count").integer(static_cast<int64_t>(site.count));
    pack.text("bytes").integer(static_cast<int64_t>(site.bytes));
  }
  return pack.str();
}

thread_local int holds = 0;
thread_local int locks = 0;  // Lock objects of this thread: work is being done under them

std::string (*call_site)() = nullptr;

// Who reads, found out where the read is issued.
struct Reader {
  std::string op;
  std::string place;
  bool within = false;  // an op that is computed as a whole afterwards

  static Reader here(const char* op) {
    bool within = false;
    for (const OpScope* scope = current_op(); scope; scope = scope->outer) within = within || scope->reads_its_own();
    return {op, call_site ? call_site() : "", within};
  }
  static Reader here() {
    const OpScope* op = current_op();
    return here(op && *op->name ? op->name : "copy to the host");
  }
};

void count(const Reader& reader, size_t bytes) {
  if (reader.within) return;
  counters::unknown_reads.add();
  store().unknown_reads.add(reader.op, reader.place, bytes, config().value_unknown_read_limit);
}

uintptr_t address(const void* p) { return reinterpret_cast<uintptr_t>(p); }

void assign(const void* p, size_t bytes, State state) {
  Guard guard(store().mutex);
  store().ranges.assign(address(p), address(p) + bytes, state);
}

bool on_device(memory::Kind kind) { return kind == memory::Kind::device || kind == memory::Kind::managed; }

void zero_host(void* p, size_t bytes) {
  if (memory::find(p).kind == memory::Kind::pinned) return zero_pages(p, bytes);
  std::memset(p, 0, bytes);
}

// --- the four directions of a copy, when their turn has come; the lock is held ---

void copy_in(void* dst, const void* src, size_t bytes) {
  std::memcpy(dst, src, bytes);
  assign(dst, bytes, State::known);
}

void copy_out(void* dst, const void* src, size_t bytes, const Reader& reader) {
  if (bytes > config().value_copy_limit_bytes) {
    zero_host(dst, bytes);
    count(reader, bytes);
    return;
  }
  State worst = State::known;
  for_each_stretch(src, bytes, [&](size_t offset, size_t length, State state) {
    worst = std::max(worst, state);
    char* to = static_cast<char*>(dst) + offset;
    if (state == State::unknown) {
      std::memset(to, 0, length);
    } else {
      std::memcpy(to, static_cast<const char*>(src) + offset, length);
    }
  });
  if (worst == State::known) {
    store().unknown_reads.progress();
  } else {
    count(reader, bytes);
  }
}

// The common read, of known bytes that nothing stands before, without finding out who reads.
bool read_known(StreamId stream, void* dst, const void* src, size_t bytes) {
  Guard guard(store().mutex);
  if (!idle(stream) || state(src, bytes) != State::known) return false;
  std::memcpy(dst, src, bytes);
  store().unknown_reads.progress();
  return true;
}

void copy_across(void* dst, const void* src, size_t bytes) {
  if (dst == src) return;
  struct Stretch {
    size_t offset, length;
    State state;
  };
  std::vector<Stretch> stretches;  // taken first: the destination may overlap
  for_each_stretch(src, bytes,
                   [&](size_t offset, size_t length, State state) { stretches.push_back({offset, length, state}); });
  bool overlap = address(dst) < address(src) + bytes && address(src) < address(dst) + bytes;
  if (overlap) std::memmove(dst, src, bytes);
  for (const Stretch& s : stretches) {
    char* to = static_cast<char*>(dst) + s.offset;
    if (!overlap && s.state != State::unknown) std::memcpy(to, static_cast<const char*>(src) + s.offset, s.length);
    assign(to, s.length, s.state);
  }
}

void note_carried() {
  if (OpScope* op = current_op()) ++op->carried;
}

template <typename Pending>
void drain(Pending pending) {
  if (locks > 0) fail("a value task waits for other values", "this is an error in phantora itself; please report it");
  Guard guard(store().mutex);
  store().drained.wait(guard, [&] { return !pending(store().queue); });
}

}  // namespace

Lock::Lock() {
  store().mutex.lock();
  ++locks;
}
Lock::~Lock() {
  --locks;
  store().mutex.unlock();
}

Hold::Hold() { ++holds; }
Hold::~Hold() { --holds; }

void mark_known(const void* p, size_t bytes) { assign(p, bytes, State::known); }
void mark_tainted(const void* p, size_t bytes) { assign(p, bytes, State::tainted); }
void mark_unknown(const void* p, size_t bytes) { assign(p, bytes, State::unknown); }

void share(void* p, size_t bytes, uint8_t* states) {
  Guard guard(store().mutex);
  store().ranges.share(address(p), address(p) + bytes, states);
}

void relay(void* p, size_t bytes, Stored stored) {
  Guard guard(store().mutex);
  store().ranges.relay(address(p), address(p) + bytes, std::move(stored));
}

void unshare(void* p, size_t bytes) {
  Guard guard(store().mutex);
  store().ranges.unshare(address(p), address(p) + bytes);
}

State state(const void* p, size_t bytes) {
  Guard guard(store().mutex);
  return store().ranges.worst(address(p), address(p) + bytes);
}

void for_each_stretch(const void* p, size_t bytes, const std::function<void(size_t, size_t, State)>& visit) {
  Guard guard(store().mutex);
  store().ranges.for_each(address(p), address(p) + bytes, [&](uintptr_t begin, uintptr_t end, State state) {
    visit(begin - address(p), end - begin, state);
  });
}

void make_readable(void* p, size_t bytes) {
  Guard guard(store().mutex);
  if (store().ranges.worst(address(p), address(p) + bytes) != State::unknown) return;
  std::vector<std::pair<size_t, size_t>> gaps;
  for_each_stretch(p, bytes, [&](size_t offset, size_t length, State state) {
    if (state == State::unknown) gaps.emplace_back(offset, length);
  });
  for (auto [offset, length] : gaps) {
    std::memset(static_cast<char*>(p) + offset, 0, length);
    assign(static_cast<char*>(p) + offset, length, State::tainted);
  }
}

bool idle(StreamId stream) {
  if (captures::active(stream)) return false;
  Guard guard(store().mutex);
  return store().queue.idle(stream);
}

bool idle() {
  Guard guard(store().mutex);
  return store().queue.idle();
}

void submit(StreamId stream, Task task) {
  if (captures::attach(stream, [task](StreamId launched) { submit(launched, task); })) return;
  Lock lock;
  store().queue.submit(stream, std::move(task));
}

void submit(StreamId stream, std::shared_ptr<Exchange> exchange) {
  Lock lock;
  store().queue.submit(stream, std::move(exchange));
  store().drained.notify_all();
}

void exchange_arrived() {
  Lock lock;
  store().queue.run();
  store().drained.notify_all();
}

void record(StreamId stream, RecordingId recording) {
  Guard guard(store().mutex);
  store().queue.record(stream, recording);
}

void wait(StreamId stream, RecordingId recording) {
  Guard guard(store().mutex);
  store().queue.wait(stream, recording);
}

void drain_stream(StreamId stream) {
  drain([stream](const ValueQueue& queue) { return !queue.idle(stream); });
}

void drain_recording(RecordingId recording) {
  drain([recording](const ValueQueue& queue) { return queue.pending(recording); });
}

void drain_all() {
  drain([](const ValueQueue& queue) { return !queue.idle(); });
}

namespace {

// Of a graph, a task has its turn long after it was captured.
Task checked(StreamId stream, std::initializer_list<const void*> used, size_t bytes, const char* user, Task task) {
  if (!captures::active(stream)) return task;
  std::vector<const void*> on_devices;
  for (const void* p : used) {
    if (on_device(memory::find(p).kind)) on_devices.push_back(p);
  }
  return [=] {
    for (const void* p : on_devices) memory::require_device(p, bytes, user);
    task();
  };
}

}  // namespace

void copy(StreamId stream, void* dst, const void* src, size_t bytes) {
  if (bytes == 0) return;
  auto later = [=](Task task) { submit(stream, checked(stream, {dst, src}, bytes, "a copy", std::move(task))); };
  bool to_device = on_device(memory::find(dst).kind);
  memory::Kind source = memory::find(src).kind;
  bool from_device = on_device(source);
  note_carried();
  if (to_device && holds > 0) return;
  bool small = bytes <= config().value_copy_limit_bytes;
  if (to_device && !small) {
    later([dst, bytes] { mark_unknown(dst, bytes); });
  } else if (to_device && from_device) {
    later([dst, src, bytes] { copy_across(dst, src, bytes); });
  } else if (to_device && source == memory::Kind::plain && !idle(stream)) {
    later([dst, data = std::string(static_cast<const char*>(src), bytes)] { copy_in(dst, data.data(), data.size()); });
  } else if (to_device) {
    later([dst, src, bytes] { copy_in(dst, src, bytes); });
  } else if (from_device && small && read_known(stream, dst, src, bytes)) {
    return;
  } else if (from_device) {
    later([dst, src, bytes, reader = Reader::here()] { copy_out(dst, src, bytes, reader); });
  } else {
    later([dst, src, bytes] { std::memmove(dst, src, bytes); });
  }
}

void set(StreamId stream, void* dst, int byte, size_t bytes) {
  if (bytes == 0) return;
  note_carried();
  if (!on_device(memory::find(dst).kind)) {
    return submit(stream, [dst, byte, bytes] { std::memset(dst, byte, bytes); });
  }
  if (holds > 0) return;
  bool small = bytes <= config().value_copy_limit_bytes;
  submit(stream, checked(stream, {dst}, bytes, "a memset", [dst, byte, bytes, small] {
           if (!small && byte != 0) return mark_unknown(dst, bytes);
           small ? static_cast<void>(std::memset(dst, byte, bytes)) : zero_pages(dst, bytes);
           mark_known(dst, bytes);
         }));
}

void read(StreamId stream, const void* src, size_t bytes, const char* reader,
          std::function<void(std::string_view)> use) {
  submit(stream, checked(stream, {src}, bytes, "a condition", [=, who = Reader::here(reader)] {
           std::string data(bytes, '\0');
           copy_out(data.data(), src, bytes, who);
           use(data);
         }));
}

void count_unknown_read(const char* op, size_t bytes) {
  Reader reader = Reader::here(op);
  Guard guard(store().mutex);
  count(reader, bytes);
}

void note_progress() {
  Guard guard(store().mutex);
  store().unknown_reads.progress();
}

void set_call_site(std::string (*where)()) { call_site = where; }

}  // namespace phantora::values
