// Memory, copies and sets of the driver API.
#include "phantora/memory.h"

#include "driver/types.h"
#include "phantora/device.h"
#include "phantora/memory_pool.h"
#include "phantora/recorder.h"
#include "phantora/transfer.h"
#include "phantora/virtual_memory.h"

namespace phantora::driver {

namespace {

using transfer::Rows;
using transfer::Wait;

Status allocate(DevicePointer* out, size_t bytes) {
  if (!out || bytes == 0) return Status::invalid_value;
  recorder::charge_call();
  void* pointer = memory::allocate(device::current(), bytes);
  *out = to_address(pointer);
  return pointer ? Status::success : Status::out_of_memory;
}

Status release(void* pointer, memory::Kind kind) {
  if (!pointer) return Status::success;
  if (!memory::is_allocation(pointer, kind)) return Status::invalid_value;
  device::synchronize(device::current());
  MemoryPool::free(pointer);
  return Status::success;
}

bool reaches(DevicePointer pointer) { return transfer::is_device(to_pointer(pointer)); }

Status copy(void* dst, const void* src, size_t bytes, Stream stream, Wait wait) {
  if (bytes == 0) return Status::success;
  if (!dst || !src) return Status::invalid_value;
  std::optional<StreamId> id = streams::enter(stream);
  if (!id) return Status::invalid_handle;
  transfer::copy(*id, dst, src, bytes, wait);
  return Status::success;
}

template <typename Pattern>
Status set(DevicePointer dst, size_t pitch, Pattern pattern, size_t width, size_t height, Stream stream) {
  if (!reaches(dst)) return Status::invalid_value;
  std::optional<StreamId> id = streams::enter(stream);
  if (!id) return Status::invalid_handle;
  transfer::set(*id, to_pointer(dst), &pattern, sizeof pattern, Rows{width * sizeof pattern, height, pitch, 0});
  return Status::success;
}

// The allocation that holds it: of mapped memory the one mapping.
memory::Region allocation(DevicePointer pointer) {
  memory::Region region = memory::find(to_pointer(pointer));
  if (!region.mapped) return region;
  std::optional<virtual_memory::Mapping> mapping = virtual_memory::mapping(to_pointer(pointer));
  if (mapping) region.base = mapping->base, region.bytes = mapping->bytes;
  return region;
}

}  // namespace

extern "C" {

Status cuMemAlloc_v2(DevicePointer* pointer, size_t bytes) { return allocate(pointer, bytes); }
Status cuMemFree_v2(DevicePointer pointer) { return release(to_pointer(pointer), memory::Kind::device); }

Status cuMemHostAlloc(void** pointer, size_t bytes, unsigned) {
  if (!pointer || bytes == 0) return Status::invalid_value;
  recorder::charge_call();
  *pointer = memory::allocate_pinned(bytes);
  return Status::success;
}

Status cuMemAllocHost_v2(void** pointer, size_t bytes) { return cuMemHostAlloc(pointer, bytes, 0); }
Status cuMemFreeHost(void* pointer) { return release(pointer, memory::Kind::pinned); }

Status cuMemHostRegister_v2(void* pointer, size_t bytes, unsigned) {
  if (!pointer || bytes == 0) return Status::invalid_value;
  return memory::register_host(pointer, bytes) ? Status::success : Status::host_memory_already_registered;
}

Status cuMemHostUnregister(void* pointer) {
  return memory::unregister_host(pointer) ? Status::success : Status::host_memory_not_registered;
}

Status cuMemHostGetDevicePointer_v2(DevicePointer* on_device, void* on_host, unsigned) {
  if (!transfer::is_device(on_host)) return Status::invalid_value;
  *on_device = to_address(on_host);
  return Status::success;
}

Status cuMemGetInfo_v2(size_t* free_bytes, size_t* total_bytes) {
  memory::usage(device::current(), free_bytes, total_bytes);
  return Status::success;
}

Status cuMemGetAddressRange_v2(DevicePointer* base, size_t* bytes, DevicePointer pointer) {
  memory::Region region = allocation(pointer);
  if (region.kind == memory::Kind::plain) return Status::not_found;
  if (base) *base = to_address(region.base);
  if (bytes) *bytes = region.bytes;
  return Status::success;
}

Status cuPointerGetAttribute(void* out, PointerAttribute attribute, DevicePointer pointer);

Status cuPointerGetAttributes(unsigned count, PointerAttribute* attributes, void** out, DevicePointer pointer) {
  for (unsigned i = 0; i < count; ++i) cuPointerGetAttribute(out[i], attributes[i], pointer);
  return Status::success;
}

Status cuPointerGetAttribute(void* out, PointerAttribute attribute, DevicePointer pointer) {
  constexpr unsigned host_memory = 1, device_memory = 2;
  memory::Region region = allocation(pointer);
  if (region.kind == memory::Kind::plain) return Status::invalid_value;
  bool on_device = region.kind == memory::Kind::device;
  switch (attribute) {
    case PointerAttribute::memory_type:
      *static_cast<unsigned*>(out) = on_device ? device_memory : host_memory;
      return Status::success;
    case PointerAttribute::device_pointer:
    case PointerAttribute::host_pointer:
      if (on_device && attribute == PointerAttribute::host_pointer) return Status::invalid_value;
      *static_cast<void**>(out) = to_pointer(pointer);
      return Status::success;
    case PointerAttribute::sync_memops:
    case PointerAttribute::is_managed:
      *static_cast<unsigned char*>(out) = 0;
      return Status::success;
    case PointerAttribute::is_legacy_ipc_capable:
      *static_cast<unsigned char*>(out) = on_device && !region.mapped;
      return Status::success;
    case PointerAttribute::is_mapped:
      *static_cast<unsigned char*>(out) = 1;
      return Status::success;
    case PointerAttribute::device_ordinal:
      *static_cast<int*>(out) = region.device;
      return Status::success;
    case PointerAttribute::buffer_id:
    case PointerAttribute::range_start:
      *static_cast<void**>(out) = region.base;
      return Status::success;
    case PointerAttribute::range_size:
      *static_cast<size_t*>(out) = region.bytes;
      return Status::success;
    case PointerAttribute::context:
      break;
  }
  return Status::not_supported;
}

Status cuPointerSetAttribute(const void*, PointerAttribute attribute, DevicePointer) {
  return attribute == PointerAttribute::sync_memops ? Status::success : Status::invalid_value;
}

Status cuMemcpy(DevicePointer dst, DevicePointer src, size_t bytes) {
  return copy(to_pointer(dst), to_pointer(src), bytes, nullptr, Wait::always);
}

Status cuMemcpyAsync(DevicePointer dst, DevicePointer src, size_t bytes, Stream stream) {
  return copy(to_pointer(dst), to_pointer(src), bytes, stream, Wait::as_needed);
}

Status cuMemcpyHtoD_v2(DevicePointer dst, const void* src, size_t bytes) {
  if (!reaches(dst)) return Status::invalid_value;
  return copy(to_pointer(dst), src, bytes, nullptr, Wait::always);
}

Status cuMemcpyHtoDAsync_v2(DevicePointer dst, const void* src, size_t bytes, Stream stream) {
  if (!reaches(dst)) return Status::invalid_value;
  return copy(to_pointer(dst), src, bytes, stream, Wait::as_needed);
}

Status cuMemcpyDtoH_v2(void* dst, DevicePointer src, size_t bytes) {
  if (!reaches(src)) return Status::invalid_value;
  return copy(dst, to_pointer(src), bytes, nullptr, Wait::always);
}

Status cuMemcpyDtoHAsync_v2(void* dst, DevicePointer src, size_t bytes, Stream stream) {
  if (!reaches(src)) return Status::invalid_value;
  return copy(dst, to_pointer(src), bytes, stream, Wait::as_needed);
}

Status cuMemcpyDtoD_v2(DevicePointer dst, DevicePointer src, size_t bytes) {
  if (!reaches(dst) || !reaches(src)) return Status::invalid_value;
  return copy(to_pointer(dst), to_pointer(src), bytes, nullptr, Wait::always);
}

Status cuMemcpyDtoDAsync_v2(DevicePointer dst, DevicePointer src, size_t bytes, Stream stream) {
  if (!reaches(dst) || !reaches(src)) return Status::invalid_value;
  return copy(to_pointer(dst), to_pointer(src), bytes, stream, Wait::as_needed);
}

Status cuMemsetD8_v2(DevicePointer dst, unsigned char value, size_t count) {
  return set(dst, 0, value, count, 1, nullptr);
}
Status cuMemsetD16_v2(DevicePointer dst, unsigned short value, size_t count) {
  return set(dst, 0, value, count, 1, nullptr);
}
Status cuMemsetD32_v2(DevicePointer dst, unsigned value, size_t count) { return set(dst, 0, value, count, 1, nullptr); }

Status cuMemsetD8Async(DevicePointer dst, unsigned char value, size_t count, Stream stream) {
  return set(dst, 0, value, count, 1, stream);
}
Status cuMemsetD16Async(DevicePointer dst, unsigned short value, size_t count, Stream stream) {
  return set(dst, 0, value, count, 1, stream);
}
Status cuMemsetD32Async(DevicePointer dst, unsigned value, size_t count, Stream stream) {
  return set(dst, 0, value, count, 1, stream);
}

// A write in stream order. Waiting for one (cuStreamWaitValue32) is not emulated.
Status cuStreamWriteValue32_v2(Stream stream, DevicePointer dst, uint32_t value, unsigned) {
  return set(dst, 0, value, 1, 1, stream);
}
Status cuStreamWriteValue64_v2(Stream stream, DevicePointer dst, uint64_t value, unsigned) {
  return set(dst, 0, value, 1, 1, stream);
}

}  // extern "C"

}  // namespace phantora::driver
