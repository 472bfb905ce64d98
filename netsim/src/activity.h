// What moves over links.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "ids.h"
#include "sim_time.h"

namespace phantora::netsim {

struct Use {
  LinkId link;
  double weight;
  bool operator==(const Use&) const = default;
};

// After `latency` it moves `volume_bytes` at one rate r; on each link it takes weight * r of the capacity.
struct Activity {
  int64_t volume_bytes = 0;
  Time latency = 0;
  std::vector<Use> links;                                     // each link once
  double max_rate = std::numeric_limits<double>::infinity();  // bytes per ns
};

// Throws std::invalid_argument. A link that is named twice is taken once with the sum of the weights.
Activity make_activity(int64_t volume_bytes, int64_t latency_ns, const std::vector<std::pair<int64_t, double>>& links,
                       double max_rate_bytes_per_s);

}  // namespace phantora::netsim
