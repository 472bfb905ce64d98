// The part of CUDA 13's runtime API that this library is called with: layouts and numbers, under our own names.
// tests/native/cuda_layouts.cpp holds them to NVIDIA's headers.
#pragma once
#include <cstddef>
#include <cstdint>

#include "launch_attribute.h"

namespace phantora::cudart {

enum class Status : int {
  success = 0,
  invalid_value = 1,
  memory_allocation = 2,
  cudart_unloading = 4,
  invalid_configuration = 9,
  invalid_symbol = 13,
  invalid_memcpy_direction = 21,
  invalid_device_function = 98,
  invalid_device = 101,
  device_uninitialized = 201,
  unsupported_limit = 215,
  file_not_found = 301,
  invalid_resource_handle = 400,
  illegal_state = 401,
  symbol_not_found = 500,
  not_ready = 600,
  launch_out_of_resources = 701,
  cooperative_launch_too_large = 720,
  peer_access_already_enabled = 704,
  peer_access_not_enabled = 705,
  host_memory_already_registered = 712,
  host_memory_not_registered = 713,
  not_supported = 801,
  stream_capture_unsupported = 900,
  stream_capture_invalidated = 901,
  stream_capture_merge = 902,
  stream_capture_unmatched = 903,
  stream_capture_unjoined = 904,
  stream_capture_isolation = 905,
  captured_event = 907,
  stream_capture_wrong_thread = 908,
  graph_update_failure = 910,
  invalid_cluster_size = 912,
};

enum class CopyKind : int {
  host_to_host = 0,
  host_to_device = 1,
  device_to_host = 2,
  device_to_device = 3,
  by_address = 4,
};

enum class MemoryType : int { unregistered = 0, host = 1, device = 2, managed = 3 };

enum class FunctionAttribute : int {
  max_dynamic_shared = 8,
  shared_carveout = 9,
  cluster_dimension_must_be_set = 10,
  non_portable_cluster_size = 14,
  cluster_scheduling_policy = 15,
};

enum class Limit : int {
  stack_size = 0,
  printf_fifo_size = 1,
  malloc_heap_size = 2,
  sync_depth = 3,
  pending_launch_count = 4,
  l2_fetch_granularity = 5,
  persisting_l2_size = 6,
};

enum class PoolAttribute : int {
  reuse_follow_event_dependencies = 1,
  reuse_allow_opportunistic = 2,
  reuse_allow_internal_dependencies = 3,
  release_threshold = 4,
  reserved_current = 5,
  reserved_high = 6,
  used_current = 7,
  used_high = 8,
};

enum class EntryPointQuery : int { success = 0, symbol_not_found = 1, version_not_sufficient = 2 };

inline constexpr unsigned stream_non_blocking = 1;
inline constexpr unsigned event_disable_timing = 2;
inline constexpr unsigned event_interprocess = 4;
inline constexpr unsigned event_external = 1;  // of cudaEventRecordWithFlags and cudaStreamWaitEvent
inline constexpr unsigned condition_has_default = 1;
inline constexpr int child_graph_is_copied = 0;
inline constexpr int memory_is_pinned = 1, location_is_device = 1;  // cudaMemAllocationTypePinned, …LocationTypeDevice
inline constexpr unsigned long long graph_frees_on_launch = 1;      // of cudaGraphInstantiate

using Stream = void*;        // cudaStream_t
using Event = void*;         // cudaEvent_t
using KernelHandle = void*;  // cudaKernel_t, or the address that __cudaRegisterFunction named
using Pool = void*;          // cudaMemPool_t

struct Dim3 {
  uint32_t x, y, z;
};

struct PointerAttributes {
  MemoryType type;
  int device;
  void* device_pointer;
  void* host_pointer;
  long reserved[8];
};

struct FunctionAttributes {
  size_t shared_bytes;
  size_t constant_bytes;
  size_t local_bytes;
  int max_threads_per_block;
  int registers;
  int ptx_version;
  int binary_version;
  int cache_mode_ca;
  int max_dynamic_shared_bytes;
  int shared_carveout;
  int cluster_dimension_must_be_set;
  int required_cluster[3];
  int cluster_scheduling_policy;
  int non_portable_cluster_size_allowed;
  int reserved[16];
};

struct LaunchConfig {
  Dim3 grid;
  Dim3 block;
  size_t dynamic_shared_bytes;
  Stream stream;
  const shim::LaunchAttribute* attributes;
  unsigned attribute_count;
};

struct PitchedPointer {
  void* pointer;
  size_t pitch;
  size_t x_size;
  size_t y_size;
};

struct Position {
  size_t x, y, z;
};

struct Extent {
  size_t width, height, depth;
};

struct KernelNodeParameters {
  void* function;
  Dim3 grid;
  Dim3 block;
  unsigned shared_bytes;
  void** arguments;
  void** extra;
};

struct MemsetParameters {
  void* dst;
  size_t pitch;
  unsigned value;
  unsigned element_bytes;
  size_t width;
  size_t height;
};

struct HostNodeParameters {
  void (*function)(void*);
  void* data;
};

struct CopyParameters {
  void* src_array;
  Position src_position;
  PitchedPointer src;
  void* dst_array;
  Position dst_position;
  PitchedPointer dst;
  Extent extent;
  CopyKind kind;
};

struct ChildGraphParameters {
  void* graph;
  int ownership;
};

struct ConditionalParameters {
  uint64_t handle;
  int type;
  unsigned size;
  void** bodies;
};

struct MemoryAllocParameters {  // cudaMemAllocNodeParams, cudaMemAllocNodeParamsV2
  struct {
    int allocation_type, handle_types;
    int location_type, location;
    void* security_attributes;
    size_t most_bytes;
    unsigned short usage;
    unsigned char reserved[54];
  } pool;
  const void* access;
  size_t access_count;
  size_t bytes;
  void* pointer;  // given by the call
};

struct NodeParameters {  // cudaGraphNodeParams
  int type;
  int reserved[3];
  union {
    long long padding[29];
    KernelNodeParameters kernel;
    struct {
      int flags, reserved[3];
      CopyParameters parameters;
    } copy;
    MemsetParameters set;
    HostNodeParameters host;
    ChildGraphParameters graph;
    Event event;  // to wait for, or to record
    MemoryAllocParameters allocation;
    void* freed;
    ConditionalParameters conditional;
  };
  long long reserved_at_end;
};

struct GraphEdge {  // cudaGraphEdgeData: all zeros is an ordinary dependency
  unsigned char from_port, to_port, type, reserved[5];
};

struct GraphInstantiateParameters {
  unsigned long long flags;
  Stream upload_stream;
  void* error_node;
  int result;
};

struct GraphUpdateResult {
  int result;
  void* error_node;
  void* error_from_node;
};

struct DeviceProperties {
  char name[256];
  char uuid[16];
  char luid[8];
  unsigned luid_device_node_mask;
  size_t total_global_memory;
  size_t shared_memory_per_block;
  int registers_per_block;
  int warp_size;
  size_t memory_pitch;
  int max_threads_per_block;
  int max_threads_dim[3];
  int max_grid_size[3];
  size_t total_constant_memory;
  int major;
  int minor;
  size_t texture_alignment;
  size_t texture_pitch_alignment;
  int multiprocessor_count;
  int integrated;
  int can_map_host_memory;
  int texture_limits[25];  // maxTexture1D … maxTextureCubemapLayered: not emulated, left 0
  int surface_limits[14];  // maxSurface1D … maxSurfaceCubemapLayered
  size_t surface_alignment;
  int concurrent_kernels;
  int ecc_enabled;
  int pci_bus_id;
  int pci_device_id;
  int pci_domain_id;
  int tcc_driver;
  int async_engine_count;
  int unified_addressing;
  int memory_bus_width;
  int l2_cache_size;
  int persisting_l2_cache_max_size;
  int max_threads_per_multiprocessor;
  int stream_priorities_supported;
  int global_l1_cache_supported;
  int local_l1_cache_supported;
  size_t shared_memory_per_multiprocessor;
  int registers_per_multiprocessor;
  int managed_memory;
  int is_multi_gpu_board;
  int multi_gpu_board_group_id;
  int host_native_atomic_supported;
  int pageable_memory_access;
  int concurrent_managed_access;
  int compute_preemption_supported;
  int can_use_host_pointer_for_registered_memory;
  int cooperative_launch;
  size_t shared_memory_per_block_optin;
  int pageable_memory_access_uses_host_page_tables;
  int direct_managed_memory_access_from_host;
  int max_blocks_per_multiprocessor;
  int access_policy_max_window_size;
  size_t reserved_shared_memory_per_block;
  int host_register_supported;
  int sparse_array_supported;
  int host_register_read_only_supported;
  int timeline_semaphore_interop_supported;
  int memory_pools_supported;
  int gpu_direct_rdma_supported;
  unsigned gpu_direct_rdma_flush_writes_options;
  int gpu_direct_rdma_writes_ordering;
  unsigned memory_pool_supported_handle_types;
  int deferred_mapping_array_supported;
  int ipc_event_supported;
  int cluster_launch;
  int unified_function_pointers;
  int device_numa_config;
  int device_numa_id;
  int mps_enabled;
  int host_numa_id;
  unsigned gpu_pci_device_id;
  unsigned gpu_pci_subsystem_id;
  int host_numa_multinode_ipc_supported;
  int reserved[56];
};

}  // namespace phantora::cudart
