// Kernels by handle, their launches, and how many of their blocks an SM holds.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "phantora/code_image.h"
#include "phantora/export.h"
#include "phantora/streams.h"

namespace phantora {
namespace kernels PHANTORA_EXPORT {

class Description;
}  // namespace kernels PHANTORA_EXPORT

namespace signals PHANTORA_EXPORT {
struct Protocol;
}  // namespace signals PHANTORA_EXPORT

namespace kernels PHANTORA_EXPORT {

struct Kernel {
  std::string name;
  code::KernelCode code;
  bool is_read = false;         // `code` is what its image says, not what an ordinary kernel has
  const void* image = nullptr;  // that it is in; read when a launch needs it
  int dynamic_shared_limit = 48 << 10;
  int shared_carveout = -1;
  bool non_portable_cluster = false;
  std::shared_ptr<const Description> description;  // null: nobody has told anything
  const signals::Protocol* signals = nullptr;      // null: it does not signal
};

struct Shape {
  uint32_t grid[3];
  uint32_t block[3];
  size_t shared_bytes;
  uint32_t cluster[3] = {0, 0, 0};  // 0: none asked for
  bool cooperative = false;         // all blocks at once
};

// What a launch passes, as an array of pointers to each parameter, or as the buffer of all.
struct Arguments {
  void* const* each = nullptr;
  const char* buffer = nullptr;
  size_t buffer_bytes = 0;

  // Where the argument lies; null if it was not passed.
  const char* find(size_t index, const code::Parameter& parameter) const;
};

// A kernel that lives as long as the process. Its address is its handle (cudaKernel_t, CUfunction, CUkernel).
Kernel* make(const std::string& name, const void* image = nullptr);
Kernel* make(const std::string& name, const code::KernelCode& code);
Kernel* find(const void* handle);  // null if it is none of ours

// Tells what the compiler of a generated kernel knows of it (kernel_description.h). False: no such kernel, or it takes
// other arguments.
bool describe(const void* handle, const std::string& text);

enum class Result { launched, bad_stream, bad_configuration, bad_cluster, out_of_resources, too_large_for_cooperation };

// Issues it: a node of the open op, or of its own name. What a kernel that no op owns may write becomes unknown.
Result launch(Kernel& kernel, const Shape& shape, streams::Handle stream, const Arguments& arguments);

// False if the kernel may not have so much.
bool set_dynamic_shared_limit(Kernel& kernel, int bytes);

int active_blocks_per_sm(const Kernel& kernel, int block_threads, size_t dynamic_shared_bytes);
int active_clusters(const Kernel& kernel, const Shape& shape);

}  // namespace kernels PHANTORA_EXPORT
}  // namespace phantora
