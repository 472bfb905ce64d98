// Compiled device code as programs load it: what its kernels take and need, read from the image itself.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "phantora/export.h"

namespace phantora {
namespace code PHANTORA_EXPORT {

struct Parameter {
  uint32_t offset = 0;  // in the buffer of all parameters
  uint32_t bytes = 0;
};

// What an image says of one kernel. As it stands here: an ordinary one.
struct KernelCode {
  std::vector<Parameter> parameters;
  int registers = 32;  // of a thread
  int max_threads = 1024;
  int shared_bytes = 0;  // static
  int local_bytes = 0;
  int constant_bytes = 0;
  uint32_t cluster[3] = {0, 0, 0};  // blocks that it must be launched in groups of; 0: any
};

// A variable in device memory.
struct Variable {
  size_t bytes = 0;
  std::string initial;  // empty: zeros
};

// The contents of a cubin, of the cubins in a fat binary, or of PTX. Of any other image (what NVRTC gives here) nothing
// is known, and any name is one of a kernel in it.
class Image {
 public:
  // As the driver does, takes the image's own word for its size.
  static Image read(const void* image);

  bool is_known() const { return known_; }
  const KernelCode* find_kernel(const std::string& name) const;
  const Variable* find_variable(const std::string& name) const;
  const std::map<std::string, KernelCode>& kernels() const { return kernels_; }

 private:
  friend class Cubin;
  friend class Ptx;

  bool known_ = false;
  std::map<std::string, KernelCode> kernels_;
  std::map<std::string, Variable> variables_;
};

}  // namespace code PHANTORA_EXPORT
}  // namespace phantora
