// Host clocks, and which of them a thread uses.
#pragma once
#include <cstdint>
#include <memory>

#include "phantora/recorder.h"

namespace phantora {

// The clock of a host timeline: the end of its last blocking record, and what has passed since.
struct Lane {
  uint16_t id = 0;
  bool open = false;              // the simulator knows it
  bool blocked = false;           // a thread of it waits for a reply …
  uint64_t blocking_request = 0;  // … to this blocking record, 0 if it is another or has come
  int64_t base_ns = 0;
  int64_t delta_ns = 0;
  int64_t reported_ns = 0;    // delta of the last record sent
  uint64_t base_request = 0;  // the blocking request at whose end base_ns is
  int64_t shown_ns = 0;       // latest time that a thread was told; a correction may lower the clock, but not this

  // A thread that asks the same question again and again, and issues nothing in between, is spinning.
  uint64_t asked = 0;  // what: target and number, 0 for nothing
  int asked_times = 0;

  int64_t now_ns() const { return base_ns + delta_ns; }
};

enum class Role {
  main,      // main thread and autograd threads: they take turns and share lane 0
  side,      // has a lane of its own
  observer,  // PyTorch's NCCL threads and the runtime's own: watch, and are never recorded
};

// The calling thread.
struct ThreadState {
  Role role;
  std::unique_ptr<Lane> own;  // of a side thread, from its first call on
  int64_t cpu_mark_ns = 0;    // HostPolicy::measured: CPU time up to which the lane's clock has been moved

  ThreadState();
  ~ThreadState();
};

ThreadState& this_thread();

}  // namespace phantora
