#include "phantora/graph_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "phantora/memory.h"
#include "phantora/values.h"

namespace phantora::graph_memory {

namespace {

constexpr size_t unit = 512;  // as cudaMalloc aligns
constexpr size_t chunk_bytes = size_t{1} << 30;

size_t rounded_up(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

}  // namespace

// Addresses for many allocations, used once. They touch nowhere, so that each is a region of its own.
class Chunk {
 public:
  explicit Chunk(size_t bytes) : base_(static_cast<char*>(memory::reserve_addresses(bytes))), bytes_(bytes) {}
  ~Chunk() { munmap(base_, bytes_); }
  Chunk(const Chunk&) = delete;
  Chunk& operator=(const Chunk&) = delete;

  bool has_room(size_t bytes) const { return bytes + unit <= bytes_ - used_; }
  void* take(size_t bytes) {
    char* pointer = base_ + used_;
    used_ += bytes + unit;
    return pointer;
  }

 private:
  char* const base_;
  const size_t bytes_;
  size_t used_ = 0;
};

namespace {

// Of one device.
struct Pool {
  uint64_t used = 0, used_high = 0, reserved = 0, reserved_high = 0;
};

class Table {
 public:
  std::pair<std::shared_ptr<Chunk>, void*> take(size_t bytes) {
    std::lock_guard lock(mutex_);
    if (!chunk_ || !chunk_->has_room(bytes)) chunk_ = std::make_shared<Chunk>(std::max(bytes + unit, chunk_bytes));
    return {chunk_, chunk_->take(bytes)};
  }

  void add(const AllocationPtr& allocation) {
    std::lock_guard lock(mutex_);
    known_[allocation->pointer()] = allocation;
  }

  void remove(const void* pointer) {
    std::lock_guard lock(mutex_);
    known_.erase(pointer);
  }

  AllocationPtr find(const void* pointer) {
    std::lock_guard lock(mutex_);
    auto found = known_.find(pointer);
    return found == known_.end() ? nullptr : found->second.lock();
  }

  bool free(const AllocationPtr& allocation) {
    std::lock_guard lock(mutex_);
    return free_locked(allocation);
  }

  bool any_live(const std::vector<AllocationPtr>& allocations) {
    std::lock_guard lock(mutex_);
    return std::any_of(allocations.begin(), allocations.end(),
                       [this](const auto& each) { return live_.contains(each); });
  }

  // Room for what the device's graphs hold and for `bytes` more.
  bool reserve(int device, uint64_t bytes) {
    std::lock_guard lock(mutex_);
    Pool& pool = pools_[device];
    uint64_t needed = rounded_up(pool.used + bytes, memory::granule_bytes);
    if (needed > pool.reserved) {
      if (!memory::charge(device, needed - pool.reserved)) return false;
      pool.reserved = needed;
    }
    pool.reserved_high = std::max(pool.reserved_high, pool.reserved);
    pool.used_high = std::max(pool.used_high, pool.used + bytes);
    return true;
  }

  void change(const std::vector<AllocationPtr>& freed, const std::vector<AllocationPtr>& allocated) {
    std::lock_guard lock(mutex_);
    for (const AllocationPtr& each : freed) free_locked(each);
    for (const AllocationPtr& each : allocated) {
      if (live_.insert(each).second) pools_[each->device()].used += each->bytes();
    }
  }

  uint64_t get(int device, Attribute attribute) {
    std::lock_guard lock(mutex_);
    return field(pools_[device], attribute);
  }

  void reset_high(int device, Attribute attribute) {
    std::lock_guard lock(mutex_);
    Pool& pool = pools_[device];
    field(pool, attribute) = attribute == Attribute::used_high ? pool.used : pool.reserved;
  }

  void trim(int device) {
    std::lock_guard lock(mutex_);
    Pool& pool = pools_[device];
    uint64_t kept = rounded_up(pool.used, memory::granule_bytes);
    memory::discharge(device, pool.reserved - kept);
    pool.reserved = kept;
  }

 private:
  bool free_locked(const AllocationPtr& allocation) {
    if (live_.erase(allocation) == 0) return false;
    pools_[allocation->device()].used -= allocation->bytes();
    return true;
  }

  static uint64_t& field(Pool& pool, Attribute attribute) {
    switch (attribute) {
      case Attribute::used:
        return pool.used;
      case Attribute::used_high:
        return pool.used_high;
      case Attribute::reserved:
        return pool.reserved;
      default:
        return pool.reserved_high;
    }
  }

  std::mutex mutex_;  // whoever frees an allocation holds it: none goes while this is locked
  std::shared_ptr<Chunk> chunk_;
  std::map<const void*, std::weak_ptr<Allocation>> known_;
  std::set<AllocationPtr> live_;
  std::map<int, Pool> pools_;
};

Table& table() {
  static Table* instance = new Table;  // never destroyed: used by exit handlers
  return *instance;
}

}  // namespace

AllocationPtr Allocation::make(int device, size_t bytes) {
  size_t taken = rounded_up(bytes, unit);
  auto [chunk, pointer] = table().take(taken);
  AllocationPtr allocation(new Allocation(chunk, pointer, device, taken));
  table().add(allocation);
  return allocation;
}

Allocation::Allocation(std::shared_ptr<Chunk> chunk, void* pointer, int device, size_t bytes)
    : chunk_(std::move(chunk)), pointer_(pointer), device_(device), bytes_(bytes) {
  memory::show(pointer_, bytes_, device_);
}

Allocation::~Allocation() {
  table().remove(pointer_);
  values::mark_unknown(pointer_, bytes_);
  memory::hide(pointer_, bytes_);
}

AllocationPtr find(const void* pointer) { return table().find(pointer); }
bool free(const AllocationPtr& allocation) { return table().free(allocation); }

Usage::Usage(const std::vector<Event>& events) {
  std::map<int, std::pair<uint64_t, uint64_t>> needs;  // now, at most
  std::set<AllocationPtr> open;
  for (const Event& event : events) {
    auto& [now, most] = needs[event.allocation->device()];
    if (!event.frees) {
      open.insert(event.allocation);
      most = std::max(most, now += event.allocation->bytes());
    } else if (open.erase(event.allocation) != 0) {
      now -= event.allocation->bytes();
    } else {
      frees_.push_back(event.allocation);
    }
  }
  for (const auto& [device, need] : needs) needs_.push_back({device, need.second});
  leaves_.assign(open.begin(), open.end());
}

Usage::Start Usage::start(bool frees_first) {
  if (table().any_live(leaves_)) {
    if (!frees_first) return Start::still_allocated;
    table().change(leaves_, {});
  }
  for (const Need& need : needs_) {
    if (!table().reserve(need.device, need.bytes)) return Start::out_of_memory;
  }
  table().change(frees_, leaves_);
  return Start::ready;
}

uint64_t get(int device, Attribute attribute) { return table().get(device, attribute); }
void reset_high(int device, Attribute attribute) { table().reset_high(device, attribute); }
void trim(int device) { table().trim(device); }

}  // namespace phantora::graph_memory
