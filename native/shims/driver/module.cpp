// Modules, their kernels, and launches of them (Triton's among others). Images are not read: any name is taken for that
// of a kernel in it.
#include <algorithm>

#include "driver/types.h"
#include "phantora/config.h"
#include "phantora/device.h"
#include "phantora/kernels.h"

namespace phantora::driver {

namespace {

struct Image {};

Status load(Module* module, const void* image) {
  if (!module || !image) return Status::invalid_value;
  *module = new Image;
  return Status::success;
}

Status unload(Module module) {
  delete static_cast<Image*>(module);
  return Status::success;
}

Status get_kernel(Function* function, Module module, const char* name) {
  if (!function || !module || !name) return Status::invalid_value;
  *function = kernels::make(name);
  return Status::success;
}

Status launch(Function function, const kernels::Shape& shape, Stream stream) {
  const kernels::Kernel* kernel = kernels::find(function);
  if (!kernel) return Status::invalid_handle;
  switch (kernels::launch(*kernel, shape, stream)) {
    case kernels::Result::launched:
      return Status::success;
    case kernels::Result::bad_stream:
      return Status::invalid_handle;
    case kernels::Result::bad_configuration:
      break;
  }
  return Status::invalid_value;
}

int figure(const kernels::Kernel& kernel, FunctionAttribute attribute) {
  switch (attribute) {
    case FunctionAttribute::max_threads_per_block:
      return *device::attribute(1);
    case FunctionAttribute::registers:
      return kernels::registers_per_thread;
    case FunctionAttribute::ptx_version:
    case FunctionAttribute::binary_version:
      return config().cc_major * 10 + config().cc_minor;
    case FunctionAttribute::max_dynamic_shared_bytes:
      return kernel.dynamic_shared_limit;
    case FunctionAttribute::shared_carveout:
      return kernel.shared_carveout;
    case FunctionAttribute::non_portable_cluster_size_allowed:
      return kernel.non_portable_cluster;
    default:
      return 0;  // an ordinary kernel: no static shared, constant or local memory, no required cluster
  }
}

bool is_attribute(FunctionAttribute attribute) {
  return attribute >= FunctionAttribute::max_threads_per_block &&
         attribute <= FunctionAttribute::cluster_scheduling_policy;
}

}  // namespace

extern "C" {

Status cuModuleLoadData(Module* module, const void* image) { return load(module, image); }
Status cuModuleLoadDataEx(Module* module, const void* image, unsigned, void*, void**) { return load(module, image); }
Status cuModuleLoadFatBinary(Module* module, const void* image) { return load(module, image); }
Status cuModuleLoad(Module* module, const char* file) { return load(module, file); }
Status cuModuleUnload(Module module) { return unload(module); }
Status cuModuleGetFunction(Function* function, Module module, const char* name) {
  return get_kernel(function, module, name);
}

Status cuModuleGetLoadingMode(int* mode) {
  constexpr int lazy = 2;
  *mode = lazy;
  return Status::success;
}

Status cuLibraryLoadData(Module* library, const void* code, void*, void**, unsigned, void*, void**, unsigned) {
  return load(library, code);
}
Status cuLibraryUnload(Module library) { return unload(library); }
Status cuLibraryGetKernel(Function* kernel, Module library, const char* name) {
  return get_kernel(kernel, library, name);
}
Status cuLibraryGetModule(Module* module, Module library) {
  *module = library;
  return Status::success;
}
Status cuKernelGetFunction(Function* function, Function kernel) {
  *function = kernel;
  return kernels::find(kernel) ? Status::success : Status::invalid_handle;
}

Status cuFuncGetName(const char** name, Function function) {
  const kernels::Kernel* kernel = kernels::find(function);
  if (!kernel) return Status::invalid_handle;
  *name = kernel->name.c_str();
  return Status::success;
}

Status cuFuncGetAttribute(int* value, FunctionAttribute attribute, Function function) {
  const kernels::Kernel* kernel = kernels::find(function);
  if (!kernel) return Status::invalid_handle;
  if (!is_attribute(attribute)) return Status::invalid_value;
  *value = figure(*kernel, attribute);
  return Status::success;
}

Status cuFuncSetAttribute(Function function, FunctionAttribute attribute, int value) {
  kernels::Kernel* kernel = kernels::find(function);
  if (!kernel) return Status::invalid_handle;
  if (!is_attribute(attribute)) return Status::invalid_value;
  if (attribute == FunctionAttribute::max_dynamic_shared_bytes) {
    return kernels::set_dynamic_shared_limit(*kernel, value) ? Status::success : Status::invalid_value;
  }
  if (attribute == FunctionAttribute::shared_carveout) kernel->shared_carveout = value;
  if (attribute == FunctionAttribute::non_portable_cluster_size_allowed) kernel->non_portable_cluster = value != 0;
  return Status::success;
}

Status cuKernelGetAttribute(int* value, FunctionAttribute attribute, Function kernel, Device) {
  return cuFuncGetAttribute(value, attribute, kernel);
}

Status cuKernelSetAttribute(FunctionAttribute attribute, int value, Function kernel, Device) {
  return cuFuncSetAttribute(kernel, attribute, value);
}

Status cuFuncSetCacheConfig(Function function, int) {
  return kernels::find(function) ? Status::success : Status::invalid_handle;
}

Status cuFuncLoad(Function function) { return kernels::find(function) ? Status::success : Status::invalid_handle; }

Status cuFuncIsLoaded(int* state, Function function) {
  *state = kernels::find(function) != nullptr;
  return Status::success;
}

Status cuLaunchKernel(Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                      unsigned block_y, unsigned block_z, unsigned shared_bytes, Stream stream, void**, void**) {
  return launch(function, {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes}, stream);
}

Status cuLaunchCooperativeKernel(Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                                 unsigned block_y, unsigned block_z, unsigned shared_bytes, Stream stream, void**) {
  return launch(function, {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes}, stream);
}

Status cuLaunchKernelEx(const LaunchConfig* config, Function function, void**, void**) {
  if (!config) return Status::invalid_value;
  kernels::Shape shape{{}, {}, config->shared_bytes};
  std::copy_n(config->grid, 3, shape.grid);
  std::copy_n(config->block, 3, shape.block);
  return launch(function, shape, config->stream);
}

Status cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Function function, int block_threads,
                                                   size_t shared_bytes) {
  if (!kernels::find(function)) return Status::invalid_handle;
  *blocks = kernels::active_blocks_per_sm(block_threads, shared_bytes);
  return Status::success;
}

Status cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, Function function, int block_threads,
                                                            size_t shared_bytes, unsigned) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, block_threads, shared_bytes);
}

// A descriptor that only device code reads, and none runs.
Status cuTensorMapEncodeTiled(TensorMap* map, int, uint32_t, void* address, const uint64_t*, const uint64_t*,
                              const uint32_t*, const uint32_t*, int, int, int, int) {
  if (!map || !address) return Status::invalid_value;
  *map = {};
  map->opaque[0] = to_address(address);
  return Status::success;
}

}  // extern "C"

}  // namespace phantora::driver
