#include "phantora/kernels.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "phantora/config.h"
#include "phantora/device.h"
#include "phantora/launch.h"

namespace phantora::kernels {

namespace {

constexpr int max_block_threads = 1024;
constexpr int registers_per_sm = 65536;
constexpr int warp = 32;
constexpr size_t reserved_shared_bytes = 1 << 10;  // of each block, taken by the system

bool is_possible(const Kernel& kernel, const Shape& shape) {
  constexpr uint32_t grid_limits[3] = {2147483647, 65535, 65535};
  constexpr uint32_t block_limits[3] = {1024, 1024, 64};
  for (int i = 0; i < 3; ++i) {
    if (shape.grid[i] == 0 || shape.grid[i] > grid_limits[i]) return false;
    if (shape.block[i] == 0 || shape.block[i] > block_limits[i]) return false;
  }
  uint64_t threads = uint64_t{shape.block[0]} * shape.block[1] * shape.block[2];
  return threads <= max_block_threads && shape.shared_bytes <= static_cast<size_t>(kernel.dynamic_shared_limit);
}

// Triton, and whoever else launches without an op, writes where we cannot follow.
void declare_unowned(const Kernel& kernel) {
  if (current_op() != nullptr) return;
  recorder::declare_guess("kernel " + kernel.name + ", launched outside any op: its results are not marked unknown");
}

struct Registry {
  std::shared_mutex mutex;
  std::unordered_map<const void*, std::unique_ptr<Kernel>> kernels;  // by their own address
};

Registry& registry() {
  static Registry* table = new Registry;  // never destroyed: used by exit handlers
  return *table;
}

}  // namespace

Kernel* make(const char* name) {
  auto kernel = std::make_unique<Kernel>();
  kernel->name = name;
  Kernel* handle = kernel.get();
  std::unique_lock lock(registry().mutex);
  registry().kernels[handle] = std::move(kernel);
  return handle;
}

Kernel* find(const void* handle) {
  std::shared_lock lock(registry().mutex);
  auto found = registry().kernels.find(handle);
  return found == registry().kernels.end() ? nullptr : found->second.get();
}

Result launch(const Kernel& kernel, const Shape& shape, streams::Handle stream) {
  if (!is_possible(kernel, shape)) return Result::bad_configuration;
  std::optional<StreamId> id = streams::enter(stream);
  if (!id) return Result::bad_stream;
  declare_unowned(kernel);
  Launch launch;
  launch.kernel = kernel.name;
  std::copy_n(shape.grid, 3, launch.grid);
  std::copy_n(shape.block, 3, launch.block);
  phantora::launch(*id, launch);
  return Result::launched;
}

bool set_dynamic_shared_limit(Kernel& kernel, int bytes) {
  if (bytes < 0 || static_cast<uint64_t>(bytes) > config().shared_per_block_optin) return false;
  kernel.dynamic_shared_limit = bytes;
  return true;
}

// The least of what threads, blocks, registers and shared memory of an SM allow.
int active_blocks_per_sm(int block_threads, size_t dynamic_shared_bytes) {
  if (block_threads <= 0 || block_threads > max_block_threads) return 0;
  int threads = (block_threads + warp - 1) / warp * warp;
  int by_threads = *device::attribute(39) / threads;
  int by_blocks = *device::attribute(106);
  int by_registers = registers_per_sm / (threads * registers_per_thread);
  int by_shared = static_cast<int>(config().shared_per_sm / (dynamic_shared_bytes + reserved_shared_bytes));
  return std::min({by_threads, by_blocks, by_registers, by_shared});
}

}  // namespace phantora::kernels
