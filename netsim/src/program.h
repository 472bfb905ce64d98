// Records as they come from a rank (docs/protocol.md, "Records") and the programs that they form.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ring.h"

namespace phantora::netsim {

enum class Kind : uint8_t {
  kernel = 1,
  event_record = 2,
  stream_wait = 3,
  collective = 4,
  sync = 5,
  query = 6,
  event_time = 7,
  host_sync = 8,
  clock = 9,
  mark = 10,
  lane_begin = 11,
  lane_end = 12,
  memory = 13,
  event_forget = 14,
  abort = 15,
};
inline constexpr uint8_t kLastKind = 15;

enum class Target : uint8_t { stream = 0, recording = 1, device = 2 };

// Flags of kernel records, the second one of collectives as well.
inline constexpr uint8_t kLaterLaunch = 1;
inline constexpr uint8_t kWithinLaunch =
    2;  // the host gave it together with another one: it needs no room in the queue

struct Record {
  Kind kind;
  uint8_t flags;
  uint16_t lane;
  uint32_t stream;
  uint64_t delta_ns;
  uint64_t a;
  uint64_t b;
};
static_assert(sizeof(Record) == 32);

// A record that has been checked: numbers of recordings and new lanes are replaced by slots, `b` of a kernel by its
// duration.
using Step = Record;
using Batch = std::vector<Step>;

// What a lane has yet to do, in order. Steps are never changed, so copies share them.
class Program {
 public:
  bool empty() const { return next_ == end_; }
  const Step& front() const { return *next_; }

  void append(std::shared_ptr<const Batch> batch) {
    if (batch->empty()) return;
    batches_.push(std::move(batch));
    if (empty()) open_front();
  }

  void pop() {
    if (++next_ != end_) return;
    batches_.pop();
    next_ = end_ = nullptr;
    if (!batches_.empty()) open_front();
  }

 private:
  void open_front() {
    next_ = batches_.front()->data();
    end_ = next_ + batches_.front()->size();
  }

  Ring<std::shared_ptr<const Batch>> batches_;
  const Step* next_ = nullptr;
  const Step* end_ = nullptr;
};

}  // namespace phantora::netsim
