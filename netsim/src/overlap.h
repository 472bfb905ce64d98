// What runs on one device at the same time slows each other down.
//
// Kernels that fill more than the device together share it: each runs as much slower as they would fill it over. A
// device that carries communication runs its kernels `compute` times slower; communication that has a member on a
// device with a running kernel is `communication` times slower, by the slowest of its devices. Links are shared as if
// it were not: what a slowed flow leaves of its share, nobody takes.
#pragma once

#include <algorithm>
#include <vector>

#include "flow.h"
#include "ids.h"

namespace phantora::netsim {

inline constexpr uint32_t kWholeDevice = 1024;

struct Slowdown {
  double compute = 1;
  double communication = 1;
  bool operator==(const Slowdown&) const = default;
};

class Overlap {
 public:
  DeviceId add(Slowdown slowdown) { return devices_.add({.slowdown = slowdown}); }

  // The flow is on its devices from now on, or no longer.
  void enter(FlowId id, const Flow& flow);
  void leave(FlowId id, const Flow& flow);
  // One that leaves, although it may have entered at this very instant.
  void forget(FlowId id) { std::erase(newcomers_, id); }

  bool unsettled() const { return !touched_.empty(); }
  // All that enters or leaves at this instant has: works out the slowdown of the flows that it may have changed, and
  // appends these, each once.
  void settle(Slab<FlowId, Flow>& flows, std::vector<FlowId>& changed);

 private:
  struct Device {
    Slowdown slowdown;
    std::vector<FlowId> kernels{};
    uint32_t filled = 0;  // by these, in 1/kWholeDevice
    std::vector<FlowId> communication{};
    bool computes = false;  // there were kernels when it was settled
    bool touched = false;
  };

  std::vector<FlowId>& list(DeviceId id, const Flow& flow);
  double slowdown(const Flow& flow) const;
  void change(Slab<FlowId, Flow>& flows, FlowId id, std::vector<FlowId>& changed) const;

  Table<DeviceId, Device> devices_;
  std::vector<DeviceId> touched_;
  std::vector<FlowId> newcomers_;  // communication that entered at this instant
};

}  // namespace phantora::netsim
