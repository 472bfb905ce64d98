// What nvcc embeds in programs: cubins and PTX for several architectures, mostly compressed.
#pragma once
#include <string>
#include <vector>

namespace phantora::code {

class FatBinary {
 public:
  // The binary itself, or the wrapper that registered code passes.
  static bool is_one(const void* image);
  // The code for the emulated architecture, or else some other: kernels have the same parameters in all. A part that
  // cannot be unpacked is left out.
  static std::vector<std::string> parts(const void* image);
};

}  // namespace phantora::code
