// What is known of a kernel, and what may be set.
#include "driver/types.h"
#include "phantora/config.h"
#include "phantora/kernels.h"

namespace phantora::driver {

namespace {

int figure(const kernels::Kernel& kernel, FunctionAttribute attribute) {
  switch (attribute) {
    case FunctionAttribute::max_threads_per_block:
      return kernel.code.max_threads;
    case FunctionAttribute::shared_bytes:
      return kernel.code.shared_bytes;
    case FunctionAttribute::constant_bytes:
      return kernel.code.constant_bytes;
    case FunctionAttribute::local_bytes:
      return kernel.code.local_bytes;
    case FunctionAttribute::registers:
      return kernel.code.registers;
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
      return 0;  // how caches and clusters are used
  }
}

bool is_attribute(FunctionAttribute attribute) {
  return attribute >= FunctionAttribute::max_threads_per_block &&
         attribute <= FunctionAttribute::cluster_scheduling_policy;
}

Status give_parameter(const kernels::Kernel* kernel, size_t index, size_t* offset, size_t* bytes) {
  if (!kernel) return Status::invalid_handle;
  if (!offset || index >= kernel->code.parameters.size()) return Status::invalid_value;
  *offset = kernel->code.parameters[index].offset;
  if (bytes) *bytes = kernel->code.parameters[index].bytes;
  return Status::success;
}

}  // namespace

extern "C" {

Status cuFuncGetName(const char** name, Function function) {
  const kernels::Kernel* kernel = kernels::find(function);
  if (!kernel) return Status::invalid_handle;
  *name = kernel->name.c_str();
  return Status::success;
}

Status cuKernelGetName(const char** name, Function kernel) { return cuFuncGetName(name, kernel); }

Status cuFuncGetParamInfo(Function function, size_t index, size_t* offset, size_t* bytes) {
  return give_parameter(kernels::find(function), index, offset, bytes);
}

Status cuKernelGetParamInfo(Function kernel, size_t index, size_t* offset, size_t* bytes) {
  return give_parameter(kernels::find(kernel), index, offset, bytes);
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

}  // extern "C"

}  // namespace phantora::driver
