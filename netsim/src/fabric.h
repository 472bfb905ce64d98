// The links, and what happens on them whatever the ranks do.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "activity.h"
#include "ids.h"
#include "sim_time.h"

namespace phantora::netsim {

struct Fabric {
  struct Change {
    Time time;
    LinkId link;
    double capacity;
  };
  struct Background {
    Activity traffic;  // takes its share of its links, up to its greatest rate, from start to stop
    Time start;
    Time stop;
  };

  // All throw std::invalid_argument.
  size_t add_link(double capacity_bytes_per_s);
  void change_capacity(int64_t time_ns, int64_t link, double capacity_bytes_per_s);
  void add_background(const std::vector<std::pair<int64_t, double>>& links, double max_rate_bytes_per_s,
                      int64_t start_ns, int64_t stop_ns);

  std::vector<double> capacities;  // bytes per ns
  std::vector<Change> changes;     // by time; of those of one time and link the last holds
  std::vector<Background> background;
};

}  // namespace phantora::netsim
