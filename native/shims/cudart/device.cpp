// Devices: count, properties, attributes, limits, peers.
#include "phantora/device.h"
#include "phantora/activity.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <set>

#include "cudart/error.h"
#include "phantora/config.h"
#include "phantora/streams.h"

namespace phantora::cudart {

namespace {

constexpr int cuda_version = PHANTORA_CUDA * 1000;

bool exists(int device) { return device >= 0 && device < device::count(); }

int attribute(int number) { return *device::attribute(number); }

DeviceProperties properties_of(int device) {
  const Config& gpu = config();
  DeviceProperties properties{};
  std::snprintf(properties.name, sizeof properties.name, "%s", gpu.device_name.c_str());
  std::memcpy(properties.uuid, device::uuid(device).bytes, sizeof properties.uuid);
  properties.total_global_memory = gpu.memory_bytes;
  properties.shared_memory_per_block = attribute(8);
  properties.registers_per_block = attribute(12);
  properties.warp_size = attribute(10);
  properties.memory_pitch = attribute(11);
  properties.max_threads_per_block = attribute(1);
  for (int i = 0; i < 3; ++i) {
    properties.max_threads_dim[i] = attribute(2 + i);
    properties.max_grid_size[i] = attribute(5 + i);
  }
  properties.total_constant_memory = attribute(9);
  properties.major = gpu.cc_major;
  properties.minor = gpu.cc_minor;
  properties.texture_alignment = attribute(14);
  properties.texture_pitch_alignment = attribute(51);
  properties.multiprocessor_count = gpu.sm_count;
  properties.can_map_host_memory = attribute(19);
  properties.surface_alignment = attribute(30);
  properties.concurrent_kernels = attribute(31);
  properties.ecc_enabled = attribute(32);
  properties.pci_bus_id = device::pci_bus(device);
  properties.async_engine_count = attribute(40);
  properties.unified_addressing = attribute(41);
  properties.memory_bus_width = attribute(37);
  properties.l2_cache_size = attribute(38);
  properties.persisting_l2_cache_max_size = attribute(108);
  properties.max_threads_per_multiprocessor = attribute(39);
  properties.stream_priorities_supported = attribute(78);
  properties.global_l1_cache_supported = attribute(79);
  properties.local_l1_cache_supported = attribute(80);
  properties.shared_memory_per_multiprocessor = gpu.shared_per_sm;
  properties.registers_per_multiprocessor = attribute(82);
  properties.managed_memory = attribute(83);
  properties.concurrent_managed_access = attribute(89);
  properties.compute_preemption_supported = attribute(90);
  properties.can_use_host_pointer_for_registered_memory = attribute(91);
  properties.cooperative_launch = attribute(95);
  properties.shared_memory_per_block_optin = gpu.shared_per_block_optin;
  properties.max_blocks_per_multiprocessor = attribute(106);
  properties.access_policy_max_window_size = attribute(109);
  properties.reserved_shared_memory_per_block = attribute(111);
  properties.host_register_supported = attribute(99);
  properties.host_register_read_only_supported = attribute(113);
  properties.memory_pools_supported = attribute(115);
  properties.gpu_direct_rdma_supported = attribute(116);
  properties.gpu_direct_rdma_writes_ordering = attribute(118);
  properties.cluster_launch = attribute(120);
  properties.device_numa_id = attribute(131);
  properties.host_numa_id = attribute(134);
  return properties;
}

// Limits of the device side, kept for whoever asks; nothing runs on the device that could reach them.
class Limits {
 public:
  bool get(Limit limit, size_t* value) {
    std::lock_guard lock(mutex_);
    auto found = values_.find(limit);
    if (found == values_.end()) return false;
    *value = found->second;
    return true;
  }

  bool set(Limit limit, size_t value) {
    std::lock_guard lock(mutex_);
    auto found = values_.find(limit);
    if (found == values_.end()) return false;
    found->second = value;
    return true;
  }

 private:
  std::mutex mutex_;
  std::map<Limit, size_t> values_ = {
      {Limit::stack_size, 1024},           {Limit::printf_fifo_size, 1 << 20}, {Limit::malloc_heap_size, 8 << 20},
      {Limit::pending_launch_count, 2048}, {Limit::l2_fetch_granularity, 64},  {Limit::persisting_l2_size, 0},
  };
};

Limits limits;

class PeerAccess {
 public:
  bool enable(int device, int peer) {
    std::lock_guard lock(mutex_);
    return enabled_.insert({device, peer}).second;
  }
  bool disable(int device, int peer) {
    std::lock_guard lock(mutex_);
    return enabled_.erase({device, peer}) > 0;
  }

 private:
  std::mutex mutex_;
  std::set<std::pair<int, int>> enabled_;
};

PeerAccess peer_access;

std::atomic<unsigned> device_flags{0};

}  // namespace

extern "C" {

Status cudaGetDeviceCount(int* count) {
  *count = device::count();
  return Status::success;
}

Status cudaGetDevice(int* device) {
  *device = device::current();
  return if_running(Status::success);
}

Status cudaSetDevice(int device) {
  return if_running(device::set_current(device) ? Status::success : Status::invalid_device);
}

Status cudaInitDevice(int device, unsigned, unsigned) {
  return done(exists(device) ? Status::success : Status::invalid_device);
}

Status cudaSetValidDevices(int* devices, int count) {
  bool all_exist = std::all_of(devices, devices + count, exists);
  return done(all_exist ? Status::success : Status::invalid_device);
}

Status cudaSetDeviceFlags(unsigned flags) {
  device_flags = flags;
  return Status::success;
}

Status cudaGetDeviceFlags(unsigned* flags) {
  *flags = device_flags;
  return Status::success;
}

Status cudaChooseDevice(int* device, const DeviceProperties*) {
  *device = 0;
  return Status::success;
}

Status cudaGetDeviceProperties(DeviceProperties* properties, int device) {
  if (!exists(device)) return done(Status::invalid_device);
  *properties = properties_of(device);
  return Status::success;
}

Status cudaDeviceGetAttribute(int* value, int number, int device) {
  constexpr int pci_bus_attribute = 33;
  if (!exists(device)) return done(Status::invalid_device);
  std::optional<int> found = device::attribute(number);
  if (!found) return done(Status::invalid_value);
  *value = number == pci_bus_attribute ? device::pci_bus(device) : *found;
  return Status::success;
}

Status cudaDeviceGetPCIBusId(char* text, int bytes, int device) {
  if (!exists(device)) return done(Status::invalid_device);
  std::string id = device::pci_bus_id(device);
  if (!text || bytes <= static_cast<int>(id.size())) return done(Status::invalid_value);
  std::memcpy(text, id.c_str(), id.size() + 1);
  return Status::success;
}

Status cudaDeviceGetByPCIBusId(int* device, const char* text) {
  for (int i = 0; i < device::count(); ++i) {
    if (device::pci_bus_id(i) != text) continue;
    *device = i;
    return Status::success;
  }
  return done(Status::invalid_device);
}

Status cudaDeviceSynchronize() {
  if (captures::forbids_unsafe()) return done(Status::stream_capture_unsupported);
  activity::Call call(activity::Api::device_synchronize);
  device::synchronize(device::current());
  return Status::success;
}

Status cudaDeviceReset() {
  device::synchronize(device::current());
  return Status::success;
}

Status cudaDeviceGetLimit(size_t* value, Limit limit) {
  return done(limits.get(limit, value) ? Status::success : Status::unsupported_limit);
}

Status cudaDeviceSetLimit(Limit limit, size_t value) {
  return done(limits.set(limit, value) ? Status::success : Status::unsupported_limit);
}

Status cudaDeviceGetCacheConfig(int* preference) {
  *preference = 0;
  return Status::success;
}

Status cudaDeviceSetCacheConfig(int) { return Status::success; }    // a hint, without effect since Volta
Status cudaCtxResetPersistingL2Cache() { return Status::success; }  // the cost engines model no persisting lines

// CUDA names the lowest priority first; lower numbers are more urgent.
Status cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return Status::success;
}

// The GPUs of a node reach one another.
Status cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  if (!exists(device) || !exists(peer)) return done(Status::invalid_device);
  *can = device != peer;
  return Status::success;
}

Status cudaDeviceEnablePeerAccess(int peer, unsigned) {
  if (!exists(peer) || peer == device::current()) return done(Status::invalid_device);
  bool fresh = peer_access.enable(device::current(), peer);
  return done(fresh ? Status::success : Status::peer_access_already_enabled);
}

Status cudaDeviceDisablePeerAccess(int peer) {
  if (!exists(peer)) return done(Status::invalid_device);
  bool enabled = peer_access.disable(device::current(), peer);
  return done(enabled ? Status::success : Status::peer_access_not_enabled);
}

Status cudaDeviceGetP2PAttribute(int* value, int attribute, int device, int peer) {
  constexpr int performance_rank = 1, access_supported = 2, native_atomics = 3, array_access = 4;
  if (!exists(device) || !exists(peer) || device == peer) return done(Status::invalid_device);
  switch (attribute) {
    case performance_rank:
      *value = 0;
      return Status::success;
    case access_supported:
      *value = 1;
      return Status::success;
    case native_atomics:
      *value = config().nvlink_count > 0;
      return Status::success;
    case array_access:
      *value = 0;
      return Status::success;
    default:
      return done(Status::invalid_value);
  }
}

Status cudaDriverGetVersion(int* version) {
  *version = cuda_version;
  return Status::success;
}

Status cudaRuntimeGetVersion(int* version) {
  *version = cuda_version;
  return Status::success;
}

// The profiler's range does not matter: everything is recorded.
Status cudaProfilerStart() { return Status::success; }
Status cudaProfilerStop() { return Status::success; }

}  // extern "C"

}  // namespace phantora::cudart
