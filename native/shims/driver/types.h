// The part of CUDA 13's driver API that this library is called with, under our own names.
// tests/native/cuda_layouts.cpp holds it to NVIDIA's headers.
#pragma once
#include <cstddef>
#include <cstdint>

#include "launch_attribute.h"

namespace phantora::driver {

enum class Status : int {
  success = 0,
  invalid_value = 1,
  out_of_memory = 2,
  not_initialized = 3,
  invalid_device = 101,
  invalid_image = 200,
  invalid_context = 201,
  peer_access_already_enabled = 704,
  peer_access_not_enabled = 705,
  host_memory_already_registered = 712,
  host_memory_not_registered = 713,
  file_not_found = 301,
  invalid_handle = 400,
  illegal_state = 401,
  not_found = 500,
  not_ready = 600,
  not_permitted = 800,
  not_supported = 801,
  stream_capture_unsupported = 900,
  stream_capture_invalidated = 901,
  stream_capture_merge = 902,
  stream_capture_unmatched = 903,
  stream_capture_unjoined = 904,
  stream_capture_isolation = 905,
  captured_event = 907,
  stream_capture_wrong_thread = 908,
  invalid_cluster_size = 912,
  launch_out_of_resources = 701,
  cooperative_launch_too_large = 720,
};

using Device = int;              // CUdevice
using Context = void*;           // CUcontext: the primary one of a device, there are no others
using DevicePointer = uint64_t;  // CUdeviceptr
using Stream = void*;            // CUstream
using Event = void*;             // CUevent
using Function = void*;          // CUfunction, CUkernel
using Module = void*;            // CUmodule, CUlibrary

enum class PointerAttribute : int {
  context = 1,
  memory_type = 2,
  device_pointer = 3,
  host_pointer = 4,
  sync_memops = 6,
  buffer_id = 7,
  is_managed = 8,
  device_ordinal = 9,
  is_legacy_ipc_capable = 10,
  range_start = 11,
  range_size = 12,
  is_mapped = 13,
};

enum class FunctionAttribute : int {
  max_threads_per_block = 0,
  shared_bytes = 1,
  constant_bytes = 2,
  local_bytes = 3,
  registers = 4,
  ptx_version = 5,
  binary_version = 6,
  cache_mode_ca = 7,
  max_dynamic_shared_bytes = 8,
  shared_carveout = 9,
  cluster_dimension_must_be_set = 10,
  required_cluster_width = 11,
  required_cluster_height = 12,
  required_cluster_depth = 13,
  non_portable_cluster_size_allowed = 14,
  cluster_scheduling_policy = 15,
};

enum class EntryPointQuery : int { success = 0, symbol_not_found = 1, version_not_sufficient = 2 };

inline constexpr unsigned stream_non_blocking = 1;
inline constexpr unsigned event_disable_timing = 2;
inline constexpr unsigned event_interprocess = 4;
inline constexpr unsigned event_external = 1;  // of cuEventRecordWithFlags and cuStreamWaitEvent
inline constexpr uint64_t entry_points_per_thread_stream = 2;

struct LaunchConfig {
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  Stream stream;
  const shim::LaunchAttribute* attributes;
  unsigned attribute_count;
};

// CUmemAllocationProp.
struct AllocationProperties {
  int type;  // pinned: there is no other
  uint32_t handle_types;
  int location_type;
  int location;
  void* win32_attributes;
  uint8_t compression;
  uint8_t rdma_capable;
  uint16_t usage;
  uint8_t reserved[4];
};

struct Location {  // CUmemLocation
  int type;
  int id;
};

struct AccessDescription {  // CUmemAccessDesc
  Location location;
  int flags;
};

struct MulticastProperties {  // CUmulticastObjectProp
  unsigned devices;
  size_t bytes;
  uint64_t handle_types;
  uint64_t flags;
};

inline constexpr int allocation_pinned = 1;
inline constexpr int location_device = 1;
inline constexpr uint32_t handle_posix_descriptor = 1;

struct Uuid {
  char bytes[16];
};

// CUtensorMap: opaque to all but the device.
struct TensorMap {
  alignas(64) uint64_t opaque[16];
};

inline void* to_pointer(DevicePointer address) { return reinterpret_cast<void*>(address); }
inline DevicePointer to_address(const void* pointer) { return reinterpret_cast<DevicePointer>(pointer); }

}  // namespace phantora::driver
