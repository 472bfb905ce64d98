// The part of CUPTI 13's activity API that Kineto is served with, under our own names.
// tests/native/cupti_layouts.cpp holds it to NVIDIA's headers.
#pragma once
#include <cstddef>
#include <cstdint>

namespace phantora::cupti {

enum class Result : int {
  success = 0,
  invalid_parameter = 1,
  max_limit_reached = 12,
  queue_empty = 18,
};

enum class Kind : int {
  memcpy = 1,
  memset = 2,
  kernel = 3,
  runtime = 5,
  concurrent_kernel = 10,
  external_correlation = 39,
};

enum class CopyKind : uint8_t {
  unknown = 0,
  to_device = 1,
  to_host = 2,
  on_device = 8,
  on_host = 9,
  between_devices = 10
};
enum class MemoryKind : uint8_t { unknown = 0, pageable = 1, pinned = 2, device = 3 };

inline constexpr uint32_t flush_forced = 1;

#define PHANTORA_RECORD __attribute__((packed, aligned(8)))

struct PHANTORA_RECORD KernelRecord {
  Kind kind = Kind::concurrent_kernel;
  uint8_t cache_config = 0;
  uint8_t shared_config = 0;
  uint16_t registers = 0;
  int partitioned_cache[2] = {0, 0};
  uint64_t start = 0;
  uint64_t end = 0;
  uint64_t completed = 0;
  uint32_t device = 0;
  uint32_t context = 0;
  uint32_t stream = 0;
  int32_t grid[3] = {1, 1, 1};
  int32_t block[3] = {1, 1, 1};
  int32_t static_shared_bytes = 0;
  int32_t dynamic_shared_bytes = 0;
  uint32_t local_per_thread = 0;
  uint32_t local_total = 0;
  uint32_t correlation = 0;
  int64_t grid_id = 0;
  const char* name = nullptr;
  void* reserved = nullptr;
  uint64_t queued = 0;
  uint64_t submitted = 0;
  uint8_t launch_type = 0;
  uint8_t carveout[3] = {0, 0, 0};
  uint32_t shared_executed = 0;
  uint64_t graph_node = 0;
  int shared_limit = 0;
  uint32_t graph = 0;
  void* access_policy = nullptr;
  uint32_t channel = 0;
  int channel_type = 0;
  uint32_t cluster[3] = {0, 0, 0};
  uint32_t cluster_policy = 0;
  uint64_t local_total_64 = 0;
  uint32_t max_cluster = 0;
  uint32_t max_active_clusters = 0;
};

struct PHANTORA_RECORD MemcpyRecord {
  Kind kind = Kind::memcpy;
  CopyKind copy = CopyKind::unknown;
  MemoryKind source = MemoryKind::unknown;
  MemoryKind destination = MemoryKind::unknown;
  uint8_t flags = 0;
  uint64_t bytes = 0;
  uint64_t start = 0;
  uint64_t end = 0;
  uint32_t device = 0;
  uint32_t context = 0;
  uint32_t stream = 0;
  uint32_t correlation = 0;
  uint32_t runtime_correlation = 0;
  uint32_t pad = 0;
  void* reserved = nullptr;
  uint64_t graph_node = 0;
  uint32_t graph = 0;
  uint32_t channel = 0;
  int channel_type = 0;
  uint32_t pad2 = 0;
};

struct PHANTORA_RECORD MemsetRecord {
  Kind kind = Kind::memset;
  uint32_t value = 0;
  uint64_t bytes = 0;
  uint64_t start = 0;
  uint64_t end = 0;
  uint32_t device = 0;
  uint32_t context = 0;
  uint32_t stream = 0;
  uint32_t correlation = 0;
  uint16_t flags = 0;
  uint16_t memory = static_cast<uint16_t>(MemoryKind::device);
  uint32_t pad = 0;
  void* reserved = nullptr;
  uint64_t graph_node = 0;
  uint32_t graph = 0;
  uint32_t channel = 0;
  int channel_type = 0;
  uint32_t pad2 = 0;
};

struct PHANTORA_RECORD ApiRecord {
  Kind kind = Kind::runtime;
  uint32_t function = 0;
  uint64_t start = 0;
  uint64_t end = 0;
  uint32_t process = 0;
  uint32_t thread = 0;
  uint32_t correlation = 0;
  uint32_t result = 0;
};

struct PHANTORA_RECORD ExternalRecord {
  Kind kind = Kind::external_correlation;
  int external_kind = 0;
  uint64_t external = 0;
  uint32_t correlation = 0;
  uint32_t reserved = 0;
};

using RequestBuffer = void (*)(uint8_t** buffer, size_t* bytes, size_t* most_records);
using CompleteBuffer = void (*)(void* context, uint32_t stream, uint8_t* buffer, size_t bytes, size_t valid_bytes);

}  // namespace phantora::cupti
