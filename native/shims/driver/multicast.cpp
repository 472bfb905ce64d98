// Multicast objects: one address for memory of several devices, for kernels with multimem instructions.
#include "driver/types.h"
#include "phantora/device.h"
#include "phantora/memory.h"
#include "phantora/recorder.h"
#include "phantora/virtual_memory.h"

namespace phantora::driver {

namespace {

using virtual_memory::Handle;

constexpr int is_multicast_supported = 132;  // CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED

bool exists(int device) { return device >= 0 && device < device::count(); }

Status check(const MulticastProperties* properties) {
  if (device::attribute(is_multicast_supported) != 1) return Status::not_supported;
  if (!properties || properties->flags != 0 || properties->bytes == 0) return Status::invalid_value;
  bool has_devices = properties->devices >= 1 && properties->devices <= static_cast<unsigned>(device::physical_count());
  if (!has_devices) return Status::invalid_value;
  // As of memory: fabric handles need NVIDIA's IMEX service.
  return properties->handle_types & ~uint64_t{handle_posix_descriptor} ? Status::not_permitted : Status::success;
}

Status charged(bool done) {
  recorder::charge_call();
  return done ? Status::success : Status::invalid_value;
}

}  // namespace

extern "C" {

Status cuMulticastGetGranularity(size_t* bytes, const MulticastProperties* properties, int) {
  if (!bytes) return Status::invalid_value;
  *bytes = memory::granule_bytes;
  return check(properties);
}

Status cuMulticastCreate(Handle* handle, const MulticastProperties* properties) {
  if (!handle) return Status::invalid_value;
  if (Status status = check(properties); status != Status::success) return status;
  if (properties->bytes % memory::granule_bytes != 0) return Status::invalid_value;
  *handle = virtual_memory::create_multicast(
      {properties->bytes, properties->devices, static_cast<uint32_t>(properties->handle_types)});
  return charged(true);
}

Status cuMulticastAddDevice(Handle multicast, int device) {
  if (!exists(device)) return Status::invalid_device;
  return charged(virtual_memory::add_device(multicast, device));
}

Status cuMulticastBindMem(Handle multicast, size_t offset, Handle memory, size_t memory_offset, size_t bytes,
                          uint64_t flags) {
  return charged(flags == 0 && virtual_memory::bind(multicast, offset, memory, memory_offset, bytes));
}

Status cuMulticastBindAddr(Handle multicast, size_t offset, DevicePointer memory, size_t bytes, uint64_t flags) {
  // Of cuMemAlloc's memory there is no handle that could be bound.
  if (!virtual_memory::mapping(to_pointer(memory))) return Status::not_supported;
  return charged(flags == 0 && virtual_memory::bind(multicast, offset, to_pointer(memory), bytes));
}

Status cuMulticastUnbind(Handle multicast, int device, size_t offset, size_t bytes) {
  if (!exists(device)) return Status::invalid_device;
  return charged(virtual_memory::unbind(multicast, device, offset, bytes));
}

}  // extern "C"

}  // namespace phantora::driver
