// Kernel launches of all kinds, and the attributes of kernels.
#include <vector>

#include "cudart/error.h"
#include "cudart/kernel_table.h"
#include "phantora/config.h"

namespace phantora::cudart {

namespace {

// What <<<…>>> pushed and the kernel's stub will pop.
struct Configuration {
  Dim3 grid;
  Dim3 block;
  size_t shared_bytes;
  Stream stream;
};

thread_local std::vector<Configuration> configurations;

Status to_status(kernels::Result result) {
  switch (result) {
    case kernels::Result::launched:
      return Status::success;
    case kernels::Result::bad_stream:
      return Status::invalid_resource_handle;
    case kernels::Result::bad_configuration:
      return Status::invalid_configuration;
    case kernels::Result::bad_cluster:
      return Status::invalid_cluster_size;
    case kernels::Result::out_of_resources:
      return Status::launch_out_of_resources;
    case kernels::Result::too_large_for_cooperation:
      return Status::cooperative_launch_too_large;
  }
  return Status::invalid_configuration;
}

kernels::Shape shape_of(Dim3 grid, Dim3 block, size_t shared_bytes) {
  return {{grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, shared_bytes};
}

Status launch(const void* function, const kernels::Shape& shape, void** arguments, Stream stream) {
  kernels::Kernel* kernel = find_kernel(function);
  if (!kernel) return done(Status::invalid_device_function);
  return done(to_status(kernels::launch(*kernel, shape, stream, {arguments})));
}

// False where attributes ask for what is not emulated.
bool read(const LaunchConfig& config, kernels::Shape& shape) {
  shape = shape_of(config.grid, config.block, config.dynamic_shared_bytes);
  return shim::apply(config.attributes, config.attribute_count, shape);
}

Status set_attribute(kernels::Kernel* kernel, FunctionAttribute attribute, int value) {
  if (!kernel) return done(Status::invalid_device_function);
  switch (attribute) {
    case FunctionAttribute::max_dynamic_shared:
      return done(kernels::set_dynamic_shared_limit(*kernel, value) ? Status::success : Status::invalid_value);
    case FunctionAttribute::shared_carveout:
      kernel->shared_carveout = value;
      return Status::success;
    case FunctionAttribute::non_portable_cluster_size:
      kernel->non_portable_cluster = value != 0;
      return Status::success;
    case FunctionAttribute::cluster_dimension_must_be_set:
    case FunctionAttribute::cluster_scheduling_policy:
      return Status::success;  // how clusters are placed; no cost depends on it
  }
  return done(Status::invalid_value);
}

}  // namespace

extern "C" {

unsigned __cudaPushCallConfiguration(Dim3 grid, Dim3 block, size_t shared_bytes, Stream stream) {
  configurations.push_back({grid, block, shared_bytes, stream});
  return 0;
}

Status __cudaPopCallConfiguration(Dim3* grid, Dim3* block, size_t* shared_bytes, void* stream) {
  if (configurations.empty()) return done(Status::invalid_configuration);
  Configuration top = configurations.back();
  configurations.pop_back();
  *grid = top.grid;
  *block = top.block;
  *shared_bytes = top.shared_bytes;
  *static_cast<Stream*>(stream) = top.stream;
  return Status::success;
}

Status cudaLaunchKernel(const void* function, Dim3 grid, Dim3 block, void** arguments, size_t shared_bytes,
                        Stream stream) {
  return launch(function, shape_of(grid, block, shared_bytes), arguments, stream);
}

Status __cudaLaunchKernel(KernelHandle kernel, Dim3 grid, Dim3 block, void** arguments, size_t shared_bytes,
                          Stream stream) {
  return launch(kernel, shape_of(grid, block, shared_bytes), arguments, stream);
}

Status cudaLaunchCooperativeKernel(const void* function, Dim3 grid, Dim3 block, void** arguments, size_t shared_bytes,
                                   Stream stream) {
  kernels::Shape shape = shape_of(grid, block, shared_bytes);
  shape.cooperative = true;
  return launch(function, shape, arguments, stream);
}

Status cudaLaunchKernelExC(const LaunchConfig* config, const void* function, void** arguments) {
  if (!config) return done(Status::invalid_value);
  kernels::Shape shape{};
  if (!read(*config, shape)) return done(Status::not_supported);
  return launch(function, shape, arguments, config->stream);
}

Status cudaFuncGetAttributes(FunctionAttributes* attributes, const void* function) {
  kernels::Kernel* kernel = find_kernel(function);
  if (!kernel) return done(Status::invalid_device_function);
  int architecture = config().cc_major * 10 + config().cc_minor;
  *attributes = {};
  attributes->max_threads_per_block = kernel->code.max_threads;
  attributes->registers = kernel->code.registers;
  attributes->shared_bytes = kernel->code.shared_bytes;
  attributes->constant_bytes = kernel->code.constant_bytes;
  attributes->local_bytes = kernel->code.local_bytes;
  attributes->ptx_version = architecture;
  attributes->binary_version = architecture;
  attributes->max_dynamic_shared_bytes = kernel->dynamic_shared_limit;
  attributes->shared_carveout = kernel->shared_carveout;
  attributes->non_portable_cluster_size_allowed = kernel->non_portable_cluster;
  return Status::success;
}

Status cudaFuncSetAttribute(const void* function, FunctionAttribute attribute, int value) {
  return set_attribute(find_kernel(function), attribute, value);
}

Status cudaKernelSetAttributeForDevice(KernelHandle kernel, FunctionAttribute attribute, int value, int) {
  return set_attribute(find_kernel(kernel), attribute, value);
}

Status cudaFuncSetCacheConfig(const void* function, int) {
  return done(find_kernel(function) ? Status::success : Status::invalid_device_function);
}

Status cudaFuncGetName(const char** name, const void* function) {
  kernels::Kernel* kernel = find_kernel(function);
  if (!kernel) return done(Status::invalid_device_function);
  *name = kernel->name.c_str();
  return Status::success;
}

Status cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function, int block_threads,
                                                     size_t shared_bytes) {
  const kernels::Kernel* kernel = find_kernel(function);
  if (!kernel) return done(Status::invalid_device_function);
  *blocks = kernels::active_blocks_per_sm(*kernel, block_threads, shared_bytes);
  return Status::success;
}

Status cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* function, int block_threads,
                                                              size_t shared_bytes, unsigned) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, block_threads, shared_bytes);
}

Status cudaOccupancyMaxActiveClusters(int* clusters, const void* function, const LaunchConfig* config) {
  const kernels::Kernel* kernel = find_kernel(function);
  if (!kernel) return done(Status::invalid_device_function);
  kernels::Shape shape{};
  if (!clusters || !config || !read(*config, shape)) return done(Status::invalid_value);
  *clusters = kernels::active_clusters(*kernel, shape);
  return Status::success;
}

}  // extern "C"

}  // namespace phantora::cudart
