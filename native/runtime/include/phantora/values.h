// Which bytes of device memory are known, and the lazy, stream-ordered work that computes them (design: "Values").
//
// Every stream has a queue of value tasks. A task runs at once, on the caller's thread, when nothing before it on its
// stream (or on what its stream waits for) is pending; the only tasks that can be pending by themselves are exchanges:
// NCCL messages whose bytes have not come. Everything after a pending one queues behind it, in stream order, and is run
// by whoever completes the exchange. Host reads drain a stream first. All bookkeeping is under one lock (recursive).
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "phantora/export.h"
#include "phantora/recorder.h"

namespace phantora {
namespace values PHANTORA_EXPORT {

// known: computed or copied from known bytes. tainted: bytes are present and benign (zeros, or computed from benign
// zeros), reading them counts as an unknown read. unknown: read as zeros, never stored.
enum class State { known, tainted, unknown };

void mark_known(const void* p, size_t bytes);
void mark_tainted(const void* p, size_t bytes);  // the caller has stored benign bytes there
void mark_unknown(const void* p, size_t bytes);  // O(log n); touches no memory
State state(const void* p, size_t bytes);        // the worst of its bytes
// The stretches of equal state of [p, p+bytes), in order and without gaps: visit(offset from p, bytes, state).
void for_each_stretch(const void* p, size_t bytes, const std::function<void(size_t, size_t, State)>& visit);
// Makes [p, p+bytes) readable: unknown parts become stored zeros, tainted. For CPU computation on small tensors.
void make_readable(void* p, size_t bytes);

// Memory with several addresses, or seen by several processes: its states are at `states` from now on, a byte each,
// until unshare(). What was known of it is written there.
void share(void* p, size_t bytes, uint8_t* states);
// Memory that stands for other memory: unknown itself until unshare(); `stored` hears of all that is stored to it, in
// the order of the streams, and must not call back.
using Stored = std::function<void(size_t offset, size_t bytes)>;
void relay(void* p, size_t bytes, Stored stored);
void unshare(void* p, size_t bytes);

// A task must not throw, and must not drain. One for a stream that is being captured is run by each launch of the
// graph.
using Task = std::function<void()>;
void submit(StreamId stream, Task task);
// Both for callers that would rather not make a Task: under a Lock, work for an idle stream may be done at once.
class Lock {
 public:
  Lock();
  ~Lock();
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
};
bool idle(StreamId stream);  // never while it is being captured
bool idle();                 // on every stream
// A pending task: `complete` is called (any thread) when its bytes have come; then `apply` runs in stream order.
struct Exchange {
  virtual ~Exchange() = default;
  virtual void start() = 0;  // called in stream order, when all before it on its stream has run: send contributions
  virtual bool ready() = 0;  // have all bytes come?
  virtual void apply() = 0;  // store results, mark states
};
// Not for a stream that is being captured: what makes the exchange is captured (captures::add), for each launch needs
// its own.
void submit(StreamId stream, std::shared_ptr<Exchange> exchange);
void exchange_arrived();  // some exchange may have become ready: run what can run (called by the reader thread)

void record(StreamId stream, RecordingId recording);  // stream order across streams, mirrors the CUDA events
void wait(StreamId stream, RecordingId recording);
void drain_stream(StreamId stream);  // blocks (really) until the stream's tasks have run
void drain_recording(RecordingId recording);
void drain_all();

// The copy and set behind cudaMemcpy*/cudaMemset*, in stream order, with states; host pointers are always known.
// Over config().value_copy_limit_bytes nothing is copied: a device destination becomes unknown, a host destination
// zeros. Device memory set to zero is known to be zero whatever its size. The open op's `carried` is counted up. Plain
// host memory is read at once, as cudaMemcpyAsync does; pinned and registered memory when its turn comes.
void copy(StreamId stream, void* dst, const void* src, size_t bytes);
void set(StreamId stream, void* dst, int byte, size_t bytes);

// What a kernel reads that decides what happens next (a condition of a graph), in stream order: `use` gets the bytes
// that a copy to the host would, which counts those that nothing computed as read by `reader`.
void read(StreamId stream, const void* src, size_t bytes, const char* reader,
          std::function<void(std::string_view)> use);

// While one is alive, copies and sets of this thread leave device memory alone: the op that holds will say itself what
// its outputs are.
class Hold {
 public:
  Hold();
  ~Hold();
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
};

// A host read of bytes that nothing computed: counted by op and call site; the same site again and again without end is
// an error that says so (fail()).
void count_unknown_read(const char* op, size_t bytes);
// The script got on (an optimizer step ended, a known value was read): what it reads is no endless loop.
void note_progress();
// Who can tell where the calling thread's script is ("train.py:12"); called without the lock.
void set_call_site(std::string (*where)());

}  // namespace values PHANTORA_EXPORT
}  // namespace phantora
