// Why a simulation stands still: facts, which phantora_py/diagnosis.py puts into words.
#pragma once

#include <cstdint>
#include <vector>

#include "world.h"

namespace phantora::netsim {

// What a request, a lane or a stream waits for in the end, behind the streams and recordings on the way there.
struct Obstacle {
  enum class Kind : uint8_t {
    collective,
    send,
    receive,
    transfers,   // sends and receives under way
    kernel,      // under way
    host_group,  // hosts that meet
    recording,   // one that has not been made
    lane,        // another lane of the rank, which may act before
    chain,       // streams that wait for one another's recordings, without end
  };

  Kind kind = Kind::chain;
  int64_t name = 0;                // of the communicator, the host group, or the recording
  uint64_t sequence = 0;           // of the collective, the message of that direction, or the round of the host group
  uint32_t definition = 0;         // of the rank's own call, in its numbers
  uint32_t member = 0;             // the rank is
  uint32_t peer = 0;               // of a send or receive
  bool mismatched = false;         // members do not ask for the same: it never starts
  std::vector<uint32_t> absent{};  // members (of a host group: ranks) that have not come
  std::vector<uint32_t> busy{};    // members that have, but whose streams are not there yet
  std::vector<uint32_t> gone{};    // members that have aborted the communicator
  uint32_t unheard = 0;            // members of a host group that nothing is known of
};

struct Waiting {
  RankId rank;
  uint16_t lane;
  uint64_t request;  // 0 if the lane does not wait for an answer
  bool launches;     // the launch queue of a stream is full
  Time since;
  Obstacle obstacle;
};

// Calls that should be the same but are not: of a collective, or of a send and its receive.
struct Disagreement {
  struct Call {
    uint32_t member;
    RankId rank;
    uint32_t definition;
  };

  int64_t comm;
  uint64_t sequence;
  bool is_message;
  std::vector<std::vector<Call>> sides;  // those that agree, by member; in the order of their first members
};

class Diagnosis {
 public:
  explicit Diagnosis(const World& world) : definitions_(world.definitions()), state_(world.state()) {}

  // Requests without an answer and lanes that cannot go on, by rank and time.
  std::vector<Waiting> waiting() const;

  // What the rank's streams stand at, by stream.
  std::vector<Obstacle> held_up(RankId rank) const;

  // By communicator and sequence.
  std::vector<Disagreement> disagreements() const;

 private:
  void add_requests(const Rank& rank, std::vector<Waiting>& out) const;
  void add_lane(const Rank& rank, LaneId lane, std::vector<Waiting>& out) const;
  Obstacle why(const Rank& rank, const Wait& wait) const;
  Obstacle why(const Rank& rank, const Stream& stream, int depth) const;
  Obstacle why(const Rank& rank, const Recording& recording, int depth) const;
  Obstacle why(const Operation& operation, const Item& item) const;
  Obstacle why(const Launch& launch, const Item& item) const;
  std::vector<uint32_t>& lacks(CommId comm, uint32_t member, bool come, Obstacle& obstacle) const;
  Obstacle why(const HostGroup& group, HostGroupId id, RankId rank) const;
  Disagreement disagreement(const Operation& operation) const;
  Disagreement disagreement(const Transfer& transfer) const;

  const Definitions& definitions_;
  const State& state_;
};

}  // namespace phantora::netsim
