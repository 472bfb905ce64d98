// Device, pinned, registered and managed memory.
#include "phantora/memory.h"

#include "cudart/error.h"
#include "phantora/device.h"
#include "phantora/graph_memory.h"
#include "phantora/memory_pool.h"
#include "phantora/recorder.h"
#include "phantora/values.h"

namespace phantora::cudart {

namespace {

constexpr size_t pitch_bytes = 512;

Status allocate(void** pointer, size_t bytes) {
  *pointer = nullptr;
  if (bytes == 0) return Status::success;
  if (captures::forbids_unsafe()) return done(Status::stream_capture_unsupported);
  recorder::charge_call();
  *pointer = memory::allocate(device::current(), bytes);
  return done(*pointer ? Status::success : Status::memory_allocation);
}

Status release(void* pointer, memory::Kind kind) {
  if (!pointer) return Status::success;
  if (!memory::is_allocation(pointer, kind)) return done(Status::invalid_value);
  if (captures::forbids_unsafe()) return done(Status::stream_capture_unsupported);
  device::synchronize(device::current());  // CUDA waits for the device before it takes memory away
  MemoryPool::free(pointer);
  return Status::success;
}

MemoryType type_of(memory::Kind kind) {
  switch (kind) {
    case memory::Kind::plain:
      return MemoryType::unregistered;
    case memory::Kind::device:
      return MemoryType::device;
    case memory::Kind::managed:
      return MemoryType::managed;
    case memory::Kind::pinned:
    case memory::Kind::registered:
      break;
  }
  return MemoryType::host;
}

}  // namespace

extern "C" {

Status cudaMalloc(void** pointer, size_t bytes) {
  return pointer ? allocate(pointer, bytes) : done(Status::invalid_value);
}

Status cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  if (!pointer || !pitch) return done(Status::invalid_value);
  *pitch = (width + pitch_bytes - 1) / pitch_bytes * pitch_bytes;
  return allocate(pointer, *pitch * height);
}

Status cudaMalloc3D(PitchedPointer* pointer, Extent extent) {
  if (!pointer) return done(Status::invalid_value);
  pointer->x_size = extent.width;
  pointer->y_size = extent.height;
  return cudaMallocPitch(&pointer->pointer, &pointer->pitch, extent.width, extent.height * extent.depth);
}

Status cudaFree(void* pointer) {
  auto of_graph = graph_memory::find(pointer);
  if (!of_graph) return release(pointer, memory::Kind::device);
  if (captures::forbids_unsafe()) return done(Status::stream_capture_unsupported);
  device::synchronize(of_graph->device());
  if (!graph_memory::free(of_graph)) return done(Status::invalid_value);
  values::mark_unknown(of_graph->pointer(), of_graph->bytes());
  return Status::success;
}

Status cudaHostAlloc(void** pointer, size_t bytes, unsigned) {
  if (!pointer) return done(Status::invalid_value);
  recorder::charge_call();
  *pointer = bytes ? memory::allocate_pinned(bytes) : nullptr;
  return Status::success;
}

Status cudaMallocHost(void** pointer, size_t bytes) { return cudaHostAlloc(pointer, bytes, 0); }

Status cudaFreeHost(void* pointer) { return release(pointer, memory::Kind::pinned); }

Status cudaHostRegister(void* pointer, size_t bytes, unsigned) {
  if (!pointer || bytes == 0) return done(Status::invalid_value);
  recorder::charge_call();
  bool fresh = memory::register_host(pointer, bytes);
  return done(fresh ? Status::success : Status::host_memory_already_registered);
}

Status cudaHostUnregister(void* pointer) {
  return done(memory::unregister_host(pointer) ? Status::success : Status::host_memory_not_registered);
}

Status cudaHostGetDevicePointer(void** on_device, void* on_host, unsigned) {
  if (!on_device || type_of(memory::find(on_host).kind) != MemoryType::host) return done(Status::invalid_value);
  *on_device = on_host;  // one address space
  return Status::success;
}

Status cudaHostGetFlags(unsigned* flags, void* pointer) {
  constexpr unsigned portable_and_mapped = 3;
  if (!flags || type_of(memory::find(pointer).kind) != MemoryType::host) return done(Status::invalid_value);
  *flags = portable_and_mapped;
  return Status::success;
}

Status cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  memory::usage(device::current(), free_bytes, total_bytes);
  return Status::success;
}

Status cudaPointerGetAttributes(PointerAttributes* attributes, const void* pointer) {
  if (!attributes) return done(Status::invalid_value);
  memory::Region region = memory::find(pointer);
  void* address = const_cast<void*>(pointer);
  bool plain = region.kind == memory::Kind::plain;
  bool host = !plain && region.kind != memory::Kind::device;
  *attributes = {
      type_of(region.kind), plain ? -2 : region.device, plain ? nullptr : address, host ? address : nullptr, {}};
  // CUDA reports the address of plain memory as its host pointer.
  if (plain) attributes->host_pointer = address;
  return Status::success;
}

}  // extern "C"

}  // namespace phantora::cudart
