// Where a rank's records come in: checked as a whole before any of them counts.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "definitions.h"
#include "ids.h"
#include "program.h"
#include "rank.h"
#include "world.h"

namespace phantora::netsim {

class Inlet {
  // A lane whose LANE_BEGIN has come and whose LANE_END has not.
  struct OpenLane {
    uint16_t number;
    uint64_t delta_ns = 0;  // of its last record since it last blocked
    LaneId lane{};
    std::shared_ptr<Batch> steps{};  // of the batch that is being taken in
  };

  class Check;

 public:
  explicit Inlet(RankId rank) : rank_(rank) { lanes_.push_back({.number = 0, .lane = kMainLane}); }

  // Appends the records to the lanes' programs. Throws std::invalid_argument, with nothing changed, if one is
  // malformed.
  void feed(std::string_view bytes, World& world);

 private:
  Step translate(const Record& record, World& world);
  RecordingId refer(const Record& record, World& world);
  void hand_over(OpenLane& lane, World& world);
  void close(OpenLane& lane, World& world);

  RankId rank_;
  std::vector<OpenLane> lanes_;
  std::unordered_map<uint64_t, RecordingId> recordings_;  // by the rank's number; until forgotten
};

}  // namespace phantora::netsim
