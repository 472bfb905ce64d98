// Why a simulation stands still, in words.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "world.h"

namespace phantora::netsim {

struct Waiting {
  RankId rank;
  uint16_t lane;
  uint64_t request;  // 0 if the lane does not wait for an answer
  Time since;
  std::string reason;
};

class Diagnosis {
 public:
  explicit Diagnosis(const World& world) : definitions_(world.definitions()), state_(world.state()) {}

  // Requests without an answer and lanes that cannot go on, by rank and time.
  std::vector<Waiting> waiting() const;

  // Collectives whose members do not ask for the same.
  std::vector<std::string> mismatches() const;

 private:
  void add_requests(const Rank& rank, std::vector<Waiting>& out) const;
  void add_lane(const Rank& rank, LaneId lane, std::vector<Waiting>& out) const;
  std::string why(const Rank& rank, const Wait& wait) const;
  std::string why(const Rank& rank, const Stream& stream, int depth) const;
  std::string why(const Rank& rank, const Recording& recording, int depth) const;
  std::string why(const Operation& operation, const Item& item) const;
  std::string why(const Launch& launch, const Item& item) const;
  std::string why(const HostGroup& group, HostGroupId id, RankId rank) const;
  std::string mismatch(const Operation& operation) const;

  const Definitions& definitions_;
  const State& state_;
};

}  // namespace phantora::netsim
