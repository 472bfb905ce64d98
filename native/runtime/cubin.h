// The ELF files that hold compiled code of one architecture.
#pragma once
#include <cstddef>
#include <string_view>

#include "phantora/code_image.h"

namespace phantora::code {

class Cubin {
 public:
  static bool is_one(const void* image);
  // Adds its kernels and variables to `image`, unless they are there.
  static void read(const char* cubin, Image& image);
};

}  // namespace phantora::code
