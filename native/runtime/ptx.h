// Kernels of PTX, the text that the driver would compile.
#pragma once
#include "phantora/code_image.h"

namespace phantora::code {

class Ptx {
 public:
  // Adds its kernels to `image`; text that is no PTX leaves it unknown.
  static void read(const char* text, Image& image);
};

}  // namespace phantora::code
