// Kernels by handle, their launch configuration, and how many of their blocks an SM holds.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "phantora/export.h"
#include "phantora/streams.h"

namespace phantora {
namespace kernels PHANTORA_EXPORT {

// Nothing is known of a kernel but its name: the figures below are those of an ordinary one.
struct Kernel {
  std::string name;
  int dynamic_shared_limit = 48 << 10;
  int shared_carveout = -1;
  bool non_portable_cluster = false;
};

inline constexpr int registers_per_thread = 32;

struct Shape {
  uint32_t grid[3];
  uint32_t block[3];
  size_t shared_bytes;
};

// A kernel that lives as long as the process. Its address is its handle (cudaKernel_t, CUfunction, CUkernel).
Kernel* make(const char* name);
Kernel* find(const void* handle);  // null if it is none of ours

enum class Result { launched, bad_stream, bad_configuration };

// Issues it: a node of the open op, or of its own name.
Result launch(const Kernel& kernel, const Shape& shape, streams::Handle stream);

// False if the kernel may not have so much.
bool set_dynamic_shared_limit(Kernel& kernel, int bytes);

int active_blocks_per_sm(int block_threads, size_t dynamic_shared_bytes);

}  // namespace kernels PHANTORA_EXPORT
}  // namespace phantora
