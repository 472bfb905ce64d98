// Where a rank's records come in: checked as a whole before any of them counts.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "definitions.h"
#include "ids.h"
#include "program.h"
#include "world.h"

namespace phantora::netsim {

class Inlet {
  struct Lane {
    bool begun = false;     // its LANE_BEGIN has come: there is no second one
    bool open = false;      // and its LANE_END has not
    uint64_t delta_ns = 0;  // of its last record since it last blocked
  };

 public:
  explicit Inlet(RankId rank) : rank_(rank), lanes_{Lane{.begun = true, .open = true}} {}

  // Appends the records to the lanes' programs. Throws std::invalid_argument, with nothing changed, if one is
  // malformed.
  void feed(std::string_view bytes, World& world);

 private:
  class Check;  // of one batch
  using Recordings = std::unordered_map<uint64_t, RecordingId>;

  RecordingId refer(const Record& record, World& world);

  RankId rank_;
  std::vector<Lane> lanes_;
  Recordings recordings_;  // by the rank's id; until forgotten
};

}  // namespace phantora::netsim
