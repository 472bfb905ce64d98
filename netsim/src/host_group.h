// Synchronisation of hosts: the k-th call of each member belongs to the k-th round.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "ids.h"
#include "ring.h"
#include "sim_time.h"

namespace phantora::netsim {

struct HostGroup {
  struct Arrival {
    RankId rank;
    WaitId wait;
  };
  struct Round {
    std::vector<Arrival> arrivals;
    Time latest = 0;
    Time cost = 0;  // the greatest that a member gives
  };

  uint32_t size = 0;
  std::unordered_map<uint32_t, uint64_t> calls;  // of each member's rank, rounds so far
  Ring<Round> rounds;                            // not complete
  uint64_t first = 0;                            // number of the front round
};

}  // namespace phantora::netsim
