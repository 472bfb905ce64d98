#include "fabric.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

namespace phantora::netsim {

namespace {

void require(bool condition, const std::string& otherwise) {
  if (!condition) throw std::invalid_argument(otherwise);
}

double bytes_per_ns(double capacity_bytes_per_s) {
  require(
      std::isfinite(capacity_bytes_per_s) && capacity_bytes_per_s >= 1e-3,
      "a link's capacity is " + std::to_string(capacity_bytes_per_s) + " bytes/s, must be finite and at least 1e-3");
  return capacity_bytes_per_s / 1e9;
}

Time checked_time(int64_t time_ns) {
  require(time_ns >= 0 && time_ns <= kLast,
          "a time of " + std::to_string(time_ns) + " ns, must be within 0 .. 2^62 - 1");
  return time_ns;
}

}  // namespace

size_t Fabric::add_link(double capacity_bytes_per_s) {
  capacities.push_back(bytes_per_ns(capacity_bytes_per_s));
  return capacities.size() - 1;
}

void Fabric::change_capacity(int64_t time_ns, int64_t link, double capacity_bytes_per_s) {
  require(link >= 0 && static_cast<size_t>(link) < capacities.size(),
          "link " + std::to_string(link) + " does not exist");
  const Change change{checked_time(time_ns), LinkId(link), bytes_per_ns(capacity_bytes_per_s)};
  const auto later = std::upper_bound(changes.begin(), changes.end(), change,
                                      [](const Change& x, const Change& y) { return x.time < y.time; });
  changes.insert(later, change);
}

void Fabric::add_background(const std::vector<std::pair<int64_t, double>>& links, double max_rate_bytes_per_s,
                            int64_t start_ns, int64_t stop_ns) {
  require(!links.empty(), "background traffic on no link");
  for (const auto& [link, weight] : links) {
    require(static_cast<size_t>(link) < capacities.size(), "link " + std::to_string(link) + " does not exist");
  }
  require(checked_time(start_ns) < checked_time(stop_ns), "background traffic from " + std::to_string(start_ns) +
                                                              " ns to " + std::to_string(stop_ns) +
                                                              " ns\n  hint: it must stop after it starts");
  background.push_back({make_activity(0, 0, links, max_rate_bytes_per_s), start_ns, stop_ns});
}

}  // namespace phantora::netsim
