// One rank's part of the state: its lanes, streams and recordings.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ids.h"
#include "program.h"
#include "sim_time.h"
#include "stream.h"

namespace phantora::netsim {

// A request that is waiting for one or more moments.
struct Wait {
  Kind kind = Kind::sync;  // sync, query, event_time or host_sync
  Target target = Target::stream;
  LaneId lane{};  // of a sync or host_sync: the lane that is blocked
  uint16_t lane_number = 0;
  uint32_t subject = 0;  // stream, recording slot, device, or host group
  uint64_t request = 0;
  Time since = 0;
  Time latest = 0;           // of the moments that are known
  uint32_t outstanding = 0;  // moments that are not
  bool answered = false;     // a query that was answered before its moments were known
};

inline constexpr LaneId kMainLane{0};

// A host timeline: a sequential program and how far it has come.
struct Lane {
  enum class State : uint8_t { unborn, running, waiting, stalled };

  State state = State::unborn;
  uint16_t number = 0;  // as the rank calls it, for as long as it lives
  uint64_t order = 0;   // of its LANE_BEGIN among the rank's: lanes that act at the same time do so in this order
  Time base = 0;        // issue times are relative to it: end of the last blocking record, plus stalls since
  Time clock = 0;       // of the last thing that it did, or that it has waited since
  WaitId wait{};        // while waiting
  StreamId stall{};     // while stalled: the stream whose launch queue is full
  Program program;

  bool blocked() const { return state == State::waiting || state == State::stalled; }
  // The earliest time at which it does something next.
  Time next() const { return program.empty() ? clock : after(base, static_cast<Time>(program.front().delta_ns)); }
};

// The completion of everything issued before an event record on its stream.
struct Recording {
  struct Waiter {
    bool is_stream;  // a stream whose head waits for it, else a request
    uint32_t id;
  };

  uint32_t references = 0;     // steps and queued items that will look at it
  bool issued = false;         // its event_record has been executed
  bool awaited_early = false;  // something looked at it before that
  bool completed = false;      // `time` is known
  bool forgotten = false;
  StreamId stream{};  // once issued
  uint64_t name = 0;  // the rank's id of it
  Time time = 0;      // until completed, the earliest it can be
  std::vector<Waiter> waiters;
};

// A device of a rank on which what it does at once slows each other.
struct Device {
  int32_t number = 0;              // as the rank calls it
  DeviceId overlap{};              // as the network does
  bool slows = false;              // kernels and communication each other
  bool communicates = false;       // something that other ranks take part in has been issued to it
  bool is_shared = false;          // kernels that fill some of it have been issued to two streams
  std::optional<StreamId> stream;  // the first of these
};

struct Rank {
  RankId id{};
  bool closed = false;         // its process will issue nothing more
  bool touched = true;         // something changed since it was last run
  bool lanes_changed = false;  // a lane began, ended, or was woken
  Slab<LaneId, Lane> lanes;    // until they have ended; the main lane stays
  std::vector<LaneId> alive;   // those that have begun and not ended
  uint64_t lanes_named = 0;    // lanes so far
  Table<StreamId, Stream> streams;
  std::vector<Device> devices;  // few
  Slab<RecordingId, Recording> recordings;
  Slab<WaitId, Wait> waits;
  std::vector<WaitId> queries;  // not answered, by time
  uint64_t executed = 0;        // records so far: numbers them in their total order within the rank
};

}  // namespace phantora::netsim
