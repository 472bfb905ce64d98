// Every environment variable that the native side reads or sets, in one place (docs/protocol.md, "Environment of a
// rank").
#pragma once

namespace phantora::environment {
inline constexpr const char* run_dir = "PHANTORA_RUN_DIR";
inline constexpr const char* rank = "PHANTORA_RANK";
inline constexpr const char* node = "PHANTORA_NODE";
inline constexpr const char* local_rank = "PHANTORA_LOCAL_RANK";
inline constexpr const char* hostname = "PHANTORA_HOSTNAME";
// Set for the ranks of an MPI launcher, by the preloaded library, with what tells where each stands.
inline constexpr const char* world_size = "PHANTORA_WORLD_SIZE";
inline constexpr const char* ranks_per_node = "PHANTORA_RANKS_PER_NODE";
inline constexpr const char* sink = "PHANTORA_SINK";
// Set by a rank for itself once it has spoken to the simulator: processes that it starts from then on are no ranks.
inline constexpr const char* rank_pid = "PHANTORA_RANK_PID";
}  // namespace phantora::environment
