// What this rank's machine looks like: $PHANTORA_RUN_DIR/machine.conf and the environment, read once.
#pragma once
#include <cstdint>
#include <string>

#include "phantora/export.h"

namespace phantora PHANTORA_EXPORT {

enum class HostPolicy { modelled, measured, zero };

struct Config {
  int rank = 0;
  int node = 0;
  int local_rank = 0;
  int world_size = 0;  // of an MPI job, which tells it by its ranks; else 0
  int ranks_per_node = 0;
  std::string run_dir;
  std::string hostname;  // "" when the machine's own name is to be shown
  bool null_sink = false;

  std::string device_name;
  int device_count = 1;
  uint64_t memory_bytes = 0;
  uint64_t context_bytes = 0;  // taken by the CUDA context before the first allocation
  int sm_count = 0;
  int cc_major = 0;
  int cc_minor = 0;
  uint64_t l2_bytes = 0;
  uint64_t hbm_bytes_per_s = 0;
  int clock_khz = 0;
  uint64_t shared_per_block_optin = 0;
  uint64_t shared_per_sm = 0;
  int nvlink_count = 0;
  int multicast = 0;  // 1: the switch between the devices can

  HostPolicy host_policy = HostPolicy::modelled;
  int64_t dispatch_ns = 0;  // a dispatched ATen op
  int64_t launch_ns = 0;    // a kernel launch or library call
  int64_t call_ns = 0;      // any other CUDA call
  int64_t sync_ns = 0;      // returning from a blocking wait

  uint64_t value_limit_bytes = 256u << 10;     // an op whose tensors have more in all is not computed
  uint64_t value_copy_limit_bytes = 4u << 20;  // a copy or message of more carries no values
  uint64_t value_unknown_read_limit = 10'000;  // one site may read unknown values so often without progress; 0: always
  uint64_t value_loop_limit = 1'000'000;       // a while node of a graph may go round so often in one launch; 0: always
  int64_t epoch_ns = 0;                        // wall-clock time of virtual time 0
};

// Stops the process with a message and hint when machine.conf is missing or malformed.
const Config& config();

}  // namespace phantora PHANTORA_EXPORT
