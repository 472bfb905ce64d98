// Stream-ordered allocation: cudaMallocAsync and the pools.
#include "cudart/error.h"
#include "phantora/capture.h"
#include "phantora/device.h"
#include "phantora/graph_memory.h"
#include "phantora/memory.h"
#include "phantora/memory_pool.h"
#include "phantora/recorder.h"
#include "phantora/streams.h"
#include "phantora/values.h"

namespace phantora::cudart {

namespace {

using Usage = MemoryPool::Usage;

MemoryPool& of(Pool pool) { return *static_cast<MemoryPool*>(pool); }

bool is_reuse(PoolAttribute attribute) {
  return attribute >= PoolAttribute::reuse_follow_event_dependencies &&
         attribute <= PoolAttribute::reuse_allow_internal_dependencies;
}

size_t way_of(PoolAttribute attribute) { return static_cast<size_t>(attribute) - 1; }

Status get(const MemoryPool& pool, PoolAttribute attribute, void* value) {
  auto number = static_cast<uint64_t*>(value);
  switch (attribute) {
    case PoolAttribute::release_threshold:
      return *number = pool.threshold(), Status::success;
    case PoolAttribute::reserved_current:
      return *number = pool.reserved().now, Status::success;
    case PoolAttribute::reserved_high:
      return *number = pool.reserved().high, Status::success;
    case PoolAttribute::used_current:
      return *number = pool.used().now, Status::success;
    case PoolAttribute::used_high:
      return *number = pool.used().high, Status::success;
    default:
      break;
  }
  if (!is_reuse(attribute)) return Status::invalid_value;
  return *static_cast<int*>(value) = pool.reuse(way_of(attribute)), Status::success;
}

Status set(MemoryPool& pool, PoolAttribute attribute, const void* value) {
  switch (attribute) {
    case PoolAttribute::release_threshold:
      return pool.set_threshold(*static_cast<const uint64_t*>(value)), Status::success;
    case PoolAttribute::reserved_high:
      return pool.reset_reserved_high(), Status::success;
    case PoolAttribute::used_high:
      return pool.reset_used_high(), Status::success;
    default:
      break;
  }
  if (!is_reuse(attribute)) return Status::invalid_value;
  return pool.set_reuse(way_of(attribute), *static_cast<const int*>(value)), Status::success;
}

Status allocate_in_graph(StreamId captured, int device, void** pointer, size_t bytes) {
  *pointer = nullptr;
  if (bytes == 0) return Status::success;
  auto memory = graph_memory::Allocation::make(device, bytes);
  *pointer = memory->pointer();
  captures::allocate(captured, std::move(memory));
  return Status::success;
}

// What a launch of a graph has left allocated.
Status free_of_graph(StreamId stream, const graph_memory::AllocationPtr& memory) {
  if (!graph_memory::free(memory)) return done(Status::invalid_value);
  values::submit(stream, [memory] { values::mark_unknown(memory->pointer(), memory->bytes()); });
  return Status::success;
}

}  // namespace

extern "C" {

Status cudaDeviceGetDefaultMemPool(Pool* pool, int device) {
  if (!pool || device < 0 || device >= device::count()) return done(Status::invalid_device);
  *pool = &MemoryPool::of_device(device);
  return Status::success;
}

Status cudaDeviceGetMemPool(Pool* pool, int device) { return cudaDeviceGetDefaultMemPool(pool, device); }

Status cudaMallocFromPoolAsync(void** pointer, size_t bytes, Pool pool, Stream stream) {
  if (!pointer || !pool) return done(Status::invalid_value);
  std::optional<StreamId> id = streams::enter(stream);
  if (!id) return done(Status::invalid_resource_handle);
  if (captures::active(*id)) return allocate_in_graph(*id, of(pool).device(), pointer, bytes);
  recorder::charge_call();
  *pointer = bytes ? of(pool).allocate(bytes) : nullptr;
  return done(*pointer || bytes == 0 ? Status::success : Status::memory_allocation);
}

Status cudaMallocAsync(void** pointer, size_t bytes, Stream stream) {
  std::optional<streams::Info> info = streams::find(stream);
  if (!info) return done(Status::invalid_resource_handle);
  return cudaMallocFromPoolAsync(pointer, bytes, &MemoryPool::of_device(info->device), stream);
}

Status cudaFreeAsync(void* pointer, Stream stream) {
  if (!pointer) return Status::success;
  std::optional<StreamId> id = streams::enter(stream);
  if (!id) return done(Status::invalid_resource_handle);
  auto of_graph = graph_memory::find(pointer);
  if (captures::active(*id)) {
    return done(of_graph && captures::free(*id, of_graph) ? Status::success : Status::invalid_value);
  }
  recorder::charge_call();
  if (of_graph) return free_of_graph(*id, of_graph);
  if (!memory::is_allocation(pointer, memory::Kind::device)) return done(Status::invalid_value);
  MemoryPool::free(*id, pointer);
  return Status::success;
}

Status cudaMemPoolTrimTo(Pool pool, size_t bytes) {
  if (!pool) return done(Status::invalid_value);
  of(pool).trim(bytes);
  return Status::success;
}

Status cudaMemPoolGetAttribute(Pool pool, PoolAttribute attribute, void* value) {
  if (!pool || !value) return done(Status::invalid_value);
  return done(get(of(pool), attribute, value));
}

Status cudaMemPoolSetAttribute(Pool pool, PoolAttribute attribute, void* value) {
  if (!pool || !value) return done(Status::invalid_value);
  return done(set(of(pool), attribute, value));
}

// Every device of the process reaches every other's memory.
Status cudaMemPoolSetAccess(Pool pool, const void*, size_t) {
  return done(pool ? Status::success : Status::invalid_value);
}

}  // extern "C"

}  // namespace phantora::cudart
