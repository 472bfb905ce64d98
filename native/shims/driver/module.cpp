// Modules and libraries: code that is loaded at run time (Triton's among others), its kernels and its variables.
#include "phantora/modules.h"

#include <algorithm>

#include "driver/types.h"

namespace phantora::driver {

namespace {

Status load(Module* module, const void* image) {
  if (!module || !image) return Status::invalid_value;
  *module = modules::load(image);
  return Status::success;
}

Status load_file(Module* module, const char* path) {
  if (!module || !path) return Status::invalid_value;
  *module = modules::load_file(path);
  return *module ? Status::success : Status::file_not_found;
}

Status unload(Module module) { return modules::unload(module) ? Status::success : Status::invalid_handle; }

Status get_kernel(Function* function, Module module, const char* name) {
  if (!function || !name) return Status::invalid_value;
  if (!modules::is_loaded(module)) return Status::invalid_handle;
  *function = modules::find_kernel(module, name);
  return *function ? Status::success : Status::not_found;
}

Status get_variable(DevicePointer* address, size_t* bytes, Module module, const char* name) {
  if (!name) return Status::invalid_value;
  if (!modules::is_loaded(module)) return Status::invalid_handle;
  size_t size = 0;
  void* variable = modules::find_variable(module, name, &size);
  if (address) *address = to_address(variable);
  if (bytes) *bytes = size;
  return variable ? Status::success : Status::not_found;
}

Status count_kernels(unsigned* count, Module module) {
  if (!count) return Status::invalid_value;
  *count = static_cast<unsigned>(modules::kernel_names(module).size());
  return modules::is_loaded(module) ? Status::success : Status::invalid_handle;
}

Status list_kernels(Function* functions, unsigned count, Module module) {
  if (!functions) return Status::invalid_value;
  std::vector<std::string> names = modules::kernel_names(module);
  for (size_t i = 0; i < std::min<size_t>(count, names.size()); ++i) {
    functions[i] = modules::find_kernel(module, names[i]);
  }
  return modules::is_loaded(module) ? Status::success : Status::invalid_handle;
}

}  // namespace

extern "C" {

Status cuModuleLoadData(Module* module, const void* image) { return load(module, image); }
Status cuModuleLoadDataEx(Module* module, const void* image, unsigned, void*, void**) { return load(module, image); }
Status cuModuleLoadFatBinary(Module* module, const void* image) { return load(module, image); }
Status cuModuleLoad(Module* module, const char* file) { return load_file(module, file); }
Status cuModuleUnload(Module module) { return unload(module); }
Status cuModuleGetFunction(Function* function, Module module, const char* name) {
  return get_kernel(function, module, name);
}
Status cuModuleGetFunctionCount(unsigned* count, Module module) { return count_kernels(count, module); }
Status cuModuleEnumerateFunctions(Function* functions, unsigned count, Module module) {
  return list_kernels(functions, count, module);
}
Status cuModuleGetGlobal_v2(DevicePointer* address, size_t* bytes, Module module, const char* name) {
  return get_variable(address, bytes, module, name);
}

Status cuModuleGetLoadingMode(int* mode) {
  constexpr int lazy = 2;
  *mode = lazy;
  return Status::success;
}

Status cuLibraryLoadData(Module* library, const void* code, void*, void**, unsigned, void*, void**, unsigned) {
  return load(library, code);
}
Status cuLibraryLoadFromFile(Module* library, const char* file, void*, void**, unsigned, void*, void**, unsigned) {
  return load_file(library, file);
}
Status cuLibraryUnload(Module library) { return unload(library); }
Status cuLibraryGetKernel(Function* kernel, Module library, const char* name) {
  return get_kernel(kernel, library, name);
}
Status cuLibraryGetKernelCount(unsigned* count, Module library) { return count_kernels(count, library); }
Status cuLibraryEnumerateKernels(Function* kernels, unsigned count, Module library) {
  return list_kernels(kernels, count, library);
}
Status cuLibraryGetGlobal(DevicePointer* address, size_t* bytes, Module library, const char* name) {
  return get_variable(address, bytes, library, name);
}
Status cuLibraryGetModule(Module* module, Module library) {
  *module = library;
  return modules::is_loaded(library) ? Status::success : Status::invalid_handle;
}
Status cuKernelGetFunction(Function* function, Function kernel) {
  *function = kernel;
  return kernels::find(kernel) ? Status::success : Status::invalid_handle;
}

}  // extern "C"

}  // namespace phantora::driver
