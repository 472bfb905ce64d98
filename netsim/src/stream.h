// A device's stream: what was issued to it, in order, until it is known when each thing ends.
//
// A stream whose past is known is nothing but the time at which it is idle. Things queue only behind one whose end is
// not known yet: a collective under way, or a wait for a recording that has not completed.
#pragma once

#include <cstdint>
#include <vector>

#include "ids.h"
#include "program.h"
#include "ring.h"
#include "sim_time.h"

namespace phantora::netsim {

struct Item {
  // kernel, collective (of many or a launch of sends and receives), event_record, stream_wait, mark; sync: tell a
  // request
  Kind kind;
  bool later = false;           // a later launch of an op already counted
  bool launched = false;        // takes a place in the stream's launch queue
  bool point_to_point = false;  // a collective record that is a launch of sends and receives
  bool overlaps = false;        // a kernel that what else its device does may slow down
  uint16_t share = 0;           // of its device that such a kernel fills
  uint32_t definition = 0;      // as the rank numbers it; of a mark its optimizer
  uint32_t subject = 0;         // operation, launch, recording slot or wait
  uint32_t member = 0;          // of the operation
  uint64_t sequence = 0;        // the rank's count of executed records
  Time issue = 0;
  Time duration = 0;
  uint64_t a = 0;
};

// The launches of a stream that may not have ended, oldest first.
class LaunchQueue {
 public:
  void issue() { ++unknown_; }
  void ended(Time end) {
    --unknown_;
    ends_.push(end);
  }
  // How many have not ended at `now`. `now` must not fall from call to call.
  size_t unfinished(Time now) {
    while (!ends_.empty() && ends_.front() <= now) ends_.pop();
    return unknown_ + ends_.size();
  }
  bool oldest_end_known() const { return !ends_.empty(); }
  Time oldest_end() const { return ends_.front(); }

 private:
  Ring<Time> ends_;  // known ends, oldest first
  size_t unknown_ = 0;
};

struct Stream {
  static constexpr int32_t kUndefined = -1;

  static constexpr DeviceId kAlone{UINT32_MAX};

  int32_t device = kUndefined;
  DeviceId overlap = kAlone;  // the device, if what it does at once slows each other
  Time idle_at = 0;           // when everything before the queue has ended
  Time head_start = 0;        // of a collective or an overlapping kernel at the head of the queue
  Ring<Item> queue;           // the head waits for something
  LaunchQueue launches;
  std::vector<LaneId> stalled;  // lanes that wait for room in `launches`
};

}  // namespace phantora::netsim
