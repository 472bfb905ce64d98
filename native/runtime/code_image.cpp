#include "phantora/code_image.h"

#include "cubin.h"
#include "fat_binary.h"
#include "ptx.h"

namespace phantora::code {

Image Image::read(const void* image) {
  Image read;
  if (Cubin::is_one(image)) {
    Cubin::read(static_cast<const char*>(image), read);
  } else if (FatBinary::is_one(image)) {
    for (const std::string& part : FatBinary::parts(image)) {
      Cubin::is_one(part.data()) ? Cubin::read(part.data(), read) : Ptx::read(part.c_str(), read);
    }
  } else {
    Ptx::read(static_cast<const char*>(image), read);
  }
  return read;
}

const KernelCode* Image::find_kernel(const std::string& name) const {
  auto found = kernels_.find(name);
  return found == kernels_.end() ? nullptr : &found->second;
}

const Variable* Image::find_variable(const std::string& name) const {
  auto found = variables_.find(name);
  return found == variables_.end() ? nullptr : &found->second;
}

}  // namespace phantora::code
