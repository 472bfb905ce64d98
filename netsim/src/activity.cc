#include "activity.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

namespace phantora::netsim {

namespace {

constexpr double kLeastWeight = 1e-6;
constexpr double kGreatestWeight = 1e6;

void require(bool condition, const std::string& otherwise) {
  if (!condition) throw std::invalid_argument(otherwise);
}

}  // namespace

Activity make_activity(int64_t volume_bytes, int64_t latency_ns, const std::vector<std::pair<int64_t, double>>& links,
                       double max_rate_bytes_per_s) {
  require(volume_bytes >= 0, "activity: volume_bytes is " + std::to_string(volume_bytes) + ", must be >= 0");
  require(latency_ns >= 0 && latency_ns <= kLast,
          "activity: latency_ns is " + std::to_string(latency_ns) + ", must be within 0 .. 2^62 - 1");
  require(max_rate_bytes_per_s >= 1e-3,
          "activity: max_rate_bytes_per_s is " + std::to_string(max_rate_bytes_per_s) + ", must be >= 1e-3");
  require(volume_bytes == 0 || !links.empty() || std::isfinite(max_rate_bytes_per_s),
          "activity: " + std::to_string(volume_bytes) +
              " bytes, but neither links nor a greatest rate\n  hint: give max_rate_bytes_per_s, or volume_bytes 0");
  Activity activity{
      .volume_bytes = volume_bytes, .latency = latency_ns, .links = {}, .max_rate = max_rate_bytes_per_s / 1e9};
  for (const auto& [link, weight] : links) {
    require(link >= 0 && link < int64_t{1} << 31, "activity: link " + std::to_string(link) + " does not exist");
    require(weight >= kLeastWeight && weight <= kGreatestWeight,
            "activity: weight " + std::to_string(weight) + " on link " + std::to_string(link) +
                ", must be within 1e-6 .. 1e6 for rates to be meaningful in double precision");
    activity.links.push_back({LinkId(link), weight});
  }
  std::stable_sort(activity.links.begin(), activity.links.end(),
                   [](const Use& x, const Use& y) { return x.link < y.link; });
  size_t kept = 0;
  for (const Use& use : activity.links) {
    if (kept > 0 && activity.links[kept - 1].link == use.link) {
      activity.links[kept - 1].weight += use.weight;
    } else {
      activity.links[kept++] = use;
    }
  }
  activity.links.resize(kept);
  return activity;
}

}  // namespace phantora::netsim
