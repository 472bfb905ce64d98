#include "overlap.h"

#include <algorithm>
#include <utility>

namespace phantora::netsim {

void Overlap::enter(FlowId id, const Flow& flow) {
  for (const DeviceId device : flow.devices) {
    list(device, flow).push_back(id);
    devices_[device].filled += flow.share;
  }
  if (!flow.computes() && !flow.devices.empty()) newcomers_.push_back(id);
}

void Overlap::leave(FlowId id, const Flow& flow) {
  for (const DeviceId device : flow.devices) {
    std::erase(list(device, flow), id);
    devices_[device].filled -= flow.share;
  }
}

std::vector<FlowId>& Overlap::list(DeviceId id, const Flow& flow) {
  Device& device = devices_[id];
  if (!device.touched) touched_.push_back(id);
  device.touched = true;
  return flow.computes() ? device.kernels : device.communication;
}

void Overlap::settle(Slab<FlowId, Flow>& flows, std::vector<FlowId>& changed) {
  const size_t first = changed.size();
  for (const FlowId id : std::exchange(newcomers_, {})) change(flows, id, changed);
  for (const DeviceId id : std::exchange(touched_, {})) {
    Device& device = devices_[id];
    device.touched = false;
    for (const FlowId kernel : device.kernels) change(flows, kernel, changed);
    const bool computed = std::exchange(device.computes, !device.kernels.empty());
    if (computed == device.computes) continue;
    for (const FlowId flow : device.communication) change(flows, flow, changed);
  }
  for (size_t i = first; i < changed.size(); ++i) flows[changed[i]].visited = false;
}

void Overlap::change(Slab<FlowId, Flow>& flows, FlowId id, std::vector<FlowId>& changed) const {
  Flow& flow = flows[id];
  if (std::exchange(flow.visited, true)) return;
  flow.slowdown = slowdown(flow);
  changed.push_back(id);
}

double Overlap::slowdown(const Flow& flow) const {
  double slowest = 1;
  for (const DeviceId id : flow.devices) {
    const Device& device = devices_[id];
    if (flow.computes() && !device.communication.empty()) slowest = std::max(slowest, device.slowdown.compute);
    if (flow.share > 0 && device.filled > kWholeDevice) slowest *= device.filled / double{kWholeDevice};
    if (!flow.computes() && !device.kernels.empty()) slowest = std::max(slowest, device.slowdown.communication);
  }
  return slowest;
}

}  // namespace phantora::netsim
