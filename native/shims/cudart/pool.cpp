// Stream-ordered allocation. Memory goes back to the device when the free's turn on its stream comes; a pool keeps
// nothing.
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "cudart/error.h"
#include "phantora/capture.h"
#include "phantora/device.h"
#include "phantora/graph_memory.h"
#include "phantora/memory.h"
#include "phantora/recorder.h"
#include "phantora/streams.h"
#include "phantora/values.h"

namespace phantora::cudart {

namespace {

struct PoolState {
  int device = 0;
  uint64_t release_threshold = 0;
  uint64_t used = 0;
  uint64_t used_high = 0;
  int reuse[3] = {1, 1, 1};
};

class Pools {
 public:
  Pool default_pool(int device) {
    std::lock_guard lock(mutex_);
    std::unique_ptr<PoolState>& pool = defaults_[device];
    if (!pool) {
      pool = std::make_unique<PoolState>();
      pool->device = device;
    }
    return pool.get();
  }

  Status allocate(PoolState& pool, void** pointer, size_t bytes) {
    *pointer = bytes ? memory::allocate(pool.device, bytes) : nullptr;
    if (bytes && !*pointer) return Status::memory_allocation;
    std::lock_guard lock(mutex_);
    pool.used += bytes;
    pool.used_high = std::max(pool.used_high, pool.used);
    if (*pointer) owners_[*pointer] = {&pool, bytes};
    return Status::success;
  }

  // False: not from a pool.
  bool forget(void* pointer) {
    std::lock_guard lock(mutex_);
    auto found = owners_.find(pointer);
    if (found == owners_.end()) return false;
    found->second.pool->used -= found->second.bytes;
    owners_.erase(found);
    return true;
  }

  Status get(const PoolState& pool, PoolAttribute attribute, void* value) {
    std::lock_guard lock(mutex_);
    auto number = static_cast<uint64_t*>(value);
    switch (attribute) {
      case PoolAttribute::release_threshold:
        return *number = pool.release_threshold, Status::success;
      case PoolAttribute::reserved_current:
      case PoolAttribute::used_current:
        return *number = pool.used, Status::success;
      case PoolAttribute::reserved_high:
      case PoolAttribute::used_high:
        return *number = pool.used_high, Status::success;
      default:
        break;
    }
    if (!is_reuse(attribute)) return Status::invalid_value;
    *static_cast<int*>(value) = pool.reuse[reuse_index(attribute)];
    return Status::success;
  }

  Status set(PoolState& pool, PoolAttribute attribute, const void* value) {
    std::lock_guard lock(mutex_);
    if (is_reuse(attribute)) {
      pool.reuse[reuse_index(attribute)] = *static_cast<const int*>(value);
    } else if (attribute == PoolAttribute::release_threshold) {
      pool.release_threshold = *static_cast<const uint64_t*>(value);
    } else if (attribute == PoolAttribute::used_high || attribute == PoolAttribute::reserved_high) {
      pool.used_high = pool.used;
    } else {
      return Status::invalid_value;
    }
    return Status::success;
  }

 private:
  struct Owner {
    PoolState* pool;
    uint64_t bytes;
  };

  static bool is_reuse(PoolAttribute attribute) {
    return attribute >= PoolAttribute::reuse_follow_event_dependencies &&
           attribute <= PoolAttribute::reuse_allow_internal_dependencies;
  }
  static int reuse_index(PoolAttribute attribute) { return static_cast<int>(attribute) - 1; }

  std::mutex mutex_;
  std::map<int, std::unique_ptr<PoolState>> defaults_;
  std::map<void*, Owner> owners_;
};

Pools& pools() {
  static Pools* table = new Pools;  // never destroyed: used by exit handlers
  return *table;
}

PoolState& state(Pool pool) { return *static_cast<PoolState*>(pool); }

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
  *pool = pools().default_pool(device);
  return Status::success;
}

Status cudaDeviceGetMemPool(Pool* pool, int device) { return cudaDeviceGetDefaultMemPool(pool, device); }

Status cudaMallocFromPoolAsync(void** pointer, size_t bytes, Pool pool, Stream stream) {
  if (!pointer || !pool) return done(Status::invalid_value);
  std::optional<StreamId> id = streams::enter(stream);
  if (!id) return done(Status::invalid_resource_handle);
  if (captures::active(*id)) return allocate_in_graph(*id, state(pool).device, pointer, bytes);
  recorder::charge_call();
  return done(pools().allocate(state(pool), pointer, bytes));
}

Status cudaMallocAsync(void** pointer, size_t bytes, Stream stream) {
  std::optional<streams::Info> info = streams::find(stream);
  if (!info) return done(Status::invalid_resource_handle);
  return cudaMallocFromPoolAsync(pointer, bytes, pools().default_pool(info->device), stream);
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
  pools().forget(pointer);
  values::submit(*id, [pointer] { memory::release(pointer); });
  return Status::success;
}

Status cudaMemPoolTrimTo(Pool pool, size_t) { return done(pool ? Status::success : Status::invalid_value); }

Status cudaMemPoolGetAttribute(Pool pool, PoolAttribute attribute, void* value) {
  if (!pool || !value) return done(Status::invalid_value);
  return done(pools().get(state(pool), attribute, value));
}

Status cudaMemPoolSetAttribute(Pool pool, PoolAttribute attribute, void* value) {
  if (!pool || !value) return done(Status::invalid_value);
  return done(pools().set(state(pool), attribute, value));
}

// Every device of the process reaches every other's memory.
Status cudaMemPoolSetAccess(Pool pool, const void*, size_t) {
  return done(pool ? Status::success : Status::invalid_value);
}

}  // extern "C"

}  // namespace phantora::cudart
