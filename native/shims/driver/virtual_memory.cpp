// Virtual memory management: reserved addresses, physical memory, mappings, and handles for other processes.
#include "phantora/virtual_memory.h"

#include "driver/types.h"
#include "phantora/device.h"
#include "phantora/memory.h"
#include "phantora/recorder.h"

namespace phantora::driver {

namespace {

using virtual_memory::Access;
using virtual_memory::Handle;

bool exists(int location_type, int id) { return location_type == location_device && id >= 0 && id < device::count(); }

bool is_access(int flags) {
  Access access = static_cast<Access>(flags);
  return access == Access::none || access == Access::read || access == Access::read_write;
}

Status check(const AllocationProperties* properties) {
  if (!properties || properties->type != allocation_pinned) return Status::invalid_value;
  if (properties->location_type != location_device) return Status::not_supported;
  if (!exists(properties->location_type, properties->location)) return Status::invalid_device;
  // Fabric handles need NVIDIA's IMEX service; where it does not run, this is the driver's answer.
  return properties->handle_types & ~handle_posix_descriptor ? Status::not_permitted : Status::success;
}

Status charged(bool done) {
  recorder::charge_call();
  return done ? Status::success : Status::invalid_value;
}

}  // namespace

extern "C" {

Status cuMemGetAllocationGranularity(size_t* bytes, const AllocationProperties* properties, int) {
  if (!bytes) return Status::invalid_value;
  *bytes = memory::granule_bytes;
  return check(properties);
}

Status cuMemAddressReserve(DevicePointer* out, size_t bytes, size_t alignment, DevicePointer hint, uint64_t flags) {
  if (!out || flags != 0) return Status::invalid_value;
  void* base = virtual_memory::reserve(bytes, alignment, to_pointer(hint));
  *out = to_address(base);
  return charged(base);
}

Status cuMemAddressFree(DevicePointer base, size_t bytes) {
  return charged(virtual_memory::free_reservation(to_pointer(base), bytes));
}

Status cuMemCreate(Handle* handle, size_t bytes, const AllocationProperties* properties, uint64_t flags) {
  if (!handle || flags != 0 || bytes == 0 || bytes % memory::granule_bytes != 0) return Status::invalid_value;
  if (Status status = check(properties); status != Status::success) return status;
  recorder::charge_call();
  *handle = virtual_memory::create(bytes, {properties->location, properties->handle_types, properties->compression,
                                           properties->rdma_capable, properties->usage});
  return *handle ? Status::success : Status::out_of_memory;
}

Status cuMemRelease(Handle handle) { return charged(virtual_memory::release(handle)); }

Status cuMemMap(DevicePointer at, size_t bytes, size_t offset, Handle handle, uint64_t flags) {
  return charged(flags == 0 && virtual_memory::map(to_pointer(at), bytes, handle, offset));
}

Status cuMemUnmap(DevicePointer at, size_t bytes) { return charged(virtual_memory::unmap(to_pointer(at), bytes)); }

Status cuMemSetAccess(DevicePointer at, size_t bytes, const AccessDescription* descriptions, size_t count) {
  if (!descriptions || count == 0) return Status::invalid_value;
  for (size_t i = 0; i < count; ++i) {
    const AccessDescription& description = descriptions[i];
    if (description.location.type != location_device) return Status::not_supported;
    if (!exists(description.location.type, description.location.id)) return Status::invalid_device;
    if (!is_access(description.flags)) return Status::invalid_value;
  }
  recorder::charge_call();
  for (size_t i = 0; i < count; ++i) {
    Access access = static_cast<Access>(descriptions[i].flags);
    bool done = virtual_memory::set_access(to_pointer(at), bytes, descriptions[i].location.id, access);
    if (!done) return Status::invalid_value;
  }
  return Status::success;
}

Status cuMemGetAccess(uint64_t* flags, const Location* location, DevicePointer at) {
  if (!flags || !location || !exists(location->type, location->id)) return Status::invalid_value;
  std::optional<Access> access = virtual_memory::access(to_pointer(at), location->id);
  if (!access) return Status::invalid_value;
  *flags = static_cast<uint64_t>(*access);
  return Status::success;
}

Status cuMemRetainAllocationHandle(Handle* handle, void* at) {
  if (!handle) return Status::invalid_value;
  *handle = virtual_memory::retain(at);
  return charged(*handle);
}

Status cuMemGetAllocationPropertiesFromHandle(AllocationProperties* out, Handle handle) {
  std::optional<virtual_memory::Properties> known = virtual_memory::properties(handle);
  if (!out || !known) return Status::invalid_value;
  *out = {allocation_pinned,
          known->handle_types,
          location_device,
          known->device,
          nullptr,
          known->compression,
          known->rdma_capable,
          known->usage,
          {}};
  return Status::success;
}

Status cuMemExportToShareableHandle(void* out, Handle handle, uint32_t type, uint64_t flags) {
  if (!out || flags != 0 || !(virtual_memory::handle_types(handle) & type)) return Status::invalid_value;
  *static_cast<int*>(out) = virtual_memory::export_descriptor(handle);
  return charged(true);
}

Status cuMemImportFromShareableHandle(Handle* handle, void* descriptor, uint32_t type) {
  if (!handle) return Status::invalid_value;
  if (type != handle_posix_descriptor) return Status::not_supported;
  *handle = virtual_memory::import_descriptor(static_cast<int>(to_address(descriptor)));
  return charged(*handle);
}

}  // extern "C"

}  // namespace phantora::driver
