// Launches, and how many blocks fit on the device.
#include <algorithm>

#include "driver/types.h"
#include "phantora/kernels.h"

namespace phantora::driver {

namespace {

Status to_status(kernels::Result result) {
  switch (result) {
    case kernels::Result::launched:
      return Status::success;
    case kernels::Result::bad_stream:
      return Status::invalid_handle;
    case kernels::Result::bad_configuration:
      return Status::invalid_value;
    case kernels::Result::bad_cluster:
      return Status::invalid_cluster_size;
    case kernels::Result::out_of_resources:
      return Status::launch_out_of_resources;
    case kernels::Result::too_large_for_cooperation:
      return Status::cooperative_launch_too_large;
  }
  return Status::invalid_value;
}

// Instead of an array of arguments: a list of tags with their values that names a buffer.
kernels::Arguments arguments(void** each, void** extra) {
  constexpr uintptr_t end = 0, buffer = 1, buffer_bytes = 2;
  kernels::Arguments arguments{each};
  for (; !each && extra && reinterpret_cast<uintptr_t>(extra[0]) != end; extra += 2) {
    auto tag = reinterpret_cast<uintptr_t>(extra[0]);
    if (tag == buffer) arguments.buffer = static_cast<const char*>(extra[1]);
    if (tag == buffer_bytes) arguments.buffer_bytes = *static_cast<const size_t*>(extra[1]);
  }
  return arguments;
}

Status launch(Function function, const kernels::Shape& shape, Stream stream, const kernels::Arguments& arguments) {
  kernels::Kernel* kernel = kernels::find(function);
  if (!kernel) return Status::invalid_handle;
  return to_status(kernels::launch(*kernel, shape, stream, arguments));
}

// False where attributes ask for what is not emulated.
bool read(const LaunchConfig& config, kernels::Shape& shape) {
  std::copy_n(config.grid, 3, shape.grid);
  std::copy_n(config.block, 3, shape.block);
  shape.shared_bytes = config.shared_bytes;
  return shim::apply(config.attributes, config.attribute_count, shape);
}

}  // namespace

extern "C" {

Status cuLaunchKernel(Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                      unsigned block_y, unsigned block_z, unsigned shared_bytes, Stream stream, void** each,
                      void** extra) {
  return launch(function, {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes}, stream,
                arguments(each, extra));
}

Status cuLaunchCooperativeKernel(Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                                 unsigned block_y, unsigned block_z, unsigned shared_bytes, Stream stream,
                                 void** each) {
  kernels::Shape shape{{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes};
  shape.cooperative = true;
  return launch(function, shape, stream, arguments(each, nullptr));
}

Status cuLaunchKernelEx(const LaunchConfig* config, Function function, void** each, void** extra) {
  if (!config) return Status::invalid_value;
  kernels::Shape shape{};
  if (!read(*config, shape)) return Status::not_supported;
  return launch(function, shape, config->stream, arguments(each, extra));
}

Status cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Function function, int block_threads,
                                                   size_t shared_bytes) {
  const kernels::Kernel* kernel = kernels::find(function);
  if (!kernel) return Status::invalid_handle;
  *blocks = kernels::active_blocks_per_sm(*kernel, block_threads, shared_bytes);
  return Status::success;
}

Status cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, Function function, int block_threads,
                                                            size_t shared_bytes, unsigned) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, block_threads, shared_bytes);
}

Status cuOccupancyMaxActiveClusters(int* clusters, Function function, const LaunchConfig* config) {
  const kernels::Kernel* kernel = kernels::find(function);
  if (!kernel) return Status::invalid_handle;
  kernels::Shape shape{};
  if (!clusters || !config || !read(*config, shape)) return Status::invalid_value;
  *clusters = kernels::active_clusters(*kernel, shape);
  return Status::success;
}

// A descriptor that only device code reads, and none runs: it holds the address, which a launch is searched for.
Status cuTensorMapEncodeTiled(TensorMap* map, int, uint32_t rank, void* address, const uint64_t*, const uint64_t*,
                              const uint32_t*, const uint32_t*, int, int, int, int) {
  constexpr uint32_t most_dimensions = 5;
  if (!map || !address || rank == 0 || rank > most_dimensions) return Status::invalid_value;
  *map = {};
  map->opaque[0] = to_address(address);
  return Status::success;
}

}  // extern "C"

}  // namespace phantora::driver
