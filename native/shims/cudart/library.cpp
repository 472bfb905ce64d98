// Libraries of kernels and variables that are loaded at run time.
#include <algorithm>

#include "cudart/error.h"
#include "cudart/types.h"
#include "phantora/modules.h"

namespace phantora::cudart {

namespace {

Status loaded(void* library) { return modules::is_loaded(library) ? Status::success : Status::invalid_resource_handle; }

}  // namespace

extern "C" {

Status cudaLibraryLoadData(void** library, const void* code, void*, void**, unsigned, void*, void**, unsigned) {
  if (!library || !code) return done(Status::invalid_value);
  *library = modules::load(code);
  return Status::success;
}

Status cudaLibraryLoadFromFile(void** library, const char* file, void*, void**, unsigned, void*, void**, unsigned) {
  if (!library || !file) return done(Status::invalid_value);
  *library = modules::load_file(file);
  return done(*library ? Status::success : Status::file_not_found);
}

Status cudaLibraryUnload(void* library) {
  return done(modules::unload(library) ? Status::success : Status::invalid_resource_handle);
}

Status cudaLibraryGetKernel(KernelHandle* kernel, void* library, const char* name) {
  if (!kernel || !name) return done(Status::invalid_value);
  if (loaded(library) != Status::success) return done(loaded(library));
  *kernel = modules::find_kernel(library, name);
  return done(*kernel ? Status::success : Status::symbol_not_found);
}

Status cudaLibraryGetKernelCount(unsigned* count, void* library) {
  if (!count) return done(Status::invalid_value);
  *count = static_cast<unsigned>(modules::kernel_names(library).size());
  return done(loaded(library));
}

Status cudaLibraryEnumerateKernels(KernelHandle* kernels, unsigned count, void* library) {
  if (!kernels) return done(Status::invalid_value);
  std::vector<std::string> names = modules::kernel_names(library);
  for (size_t i = 0; i < std::min<size_t>(count, names.size()); ++i) {
    kernels[i] = modules::find_kernel(library, names[i]);
  }
  return done(loaded(library));
}

Status cudaLibraryGetGlobal(void** address, size_t* bytes, void* library, const char* name) {
  if (!address || !name) return done(Status::invalid_value);
  if (loaded(library) != Status::success) return done(loaded(library));
  *address = modules::find_variable(library, name, bytes);
  return done(*address ? Status::success : Status::symbol_not_found);
}

}  // extern "C"

}  // namespace phantora::cudart
