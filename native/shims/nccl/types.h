// The types of NCCL's interface (2.30.7): names, values and layouts as callers compile them in.
#pragma once
#include <climits>
#include <cstddef>

namespace phantora::nccl {

inline constexpr int version_code = 23007;

enum class Result : int {
  success = 0,
  unhandled_cuda_error = 1,
  system_error = 2,
  internal_error = 3,
  invalid_argument = 4,
  invalid_usage = 5,
  remote_error = 6,
  in_progress = 7,
  timeout = 8,
};

enum class DataType : int {
  int8 = 0,
  uint8 = 1,
  int32 = 2,
  uint32 = 3,
  int64 = 4,
  uint64 = 5,
  float16 = 6,
  float32 = 7,
  float64 = 8,
  bfloat16 = 9,
  float8_e4m3 = 10,
  float8_e5m2 = 11,
};
inline constexpr int data_type_count = 12;

// Values from `custom` on are made by ncclRedOpCreatePreMulSum.
enum class RedOp : int { sum = 0, product = 1, maximum = 2, minimum = 3, average = 4, custom = 5 };

enum class ScalarResidence : int { device = 0, host_immediate = 1 };

enum class MemoryStatistic : int { suspendable = 0, suspended = 1, persistent = 2, total = 3 };

struct UniqueId {
  char internal[128];
};

inline constexpr int undefined_int = INT_MIN;
inline constexpr int no_color = -1;  // ncclCommSplit
inline constexpr unsigned config_magic = 0xcafebeef;

struct Config {
  size_t size;
  unsigned magic;
  unsigned version;
  int blocking;
  int cga_cluster_size;
  int min_ctas;
  int max_ctas;
  const char* net_name;
  int split_share;
  int traffic_class;
  const char* comm_name;
  int collnet_enable;
  int cta_policy;
  int shrink_share;
  int nvls_ctas;
  int channels_per_net_peer;
  int nvlink_centric_sched;
  int graph_usage_mode;
  int rma_contexts;
  int max_p2p_peers;
  int graph_stream_ordering;
};

}  // namespace phantora::nccl
