#include "phantora/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>
#include <string>
#include <vector>

#include "phantora/config.h"
#include "phantora/device.h"
#include "phantora/ipc.h"
#include "phantora/recorder.h"
#include "phantora/values.h"

namespace phantora::memory {

namespace {

constexpr size_t small_bytes = 512;  // small requests share a granule, in multiples of this
constexpr size_t small_limit_bytes = granule_bytes / 2;
constexpr size_t page_bytes = 4096;

size_t rounded_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

size_t small_footprint(size_t bytes) { return rounded_up(std::max<size_t>(bytes, 1), small_bytes); }

// Address space that takes host memory only where it is touched. Null if the host has no more address space.
void* reserve(size_t bytes, size_t alignment) {
  size_t span = bytes + alignment;
  void* mapped = mmap(nullptr, span, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  uintptr_t begin = reinterpret_cast<uintptr_t>(mapped);
  uintptr_t aligned = rounded_up(begin, alignment);
  if (aligned > begin) munmap(mapped, aligned - begin);
  munmap(reinterpret_cast<void*>(aligned + bytes), begin + span - aligned - bytes);
  void* base = reinterpret_cast<void*>(aligned);
  madvise(base, bytes, MADV_NOHUGEPAGE);  // a touched byte must not cost 2 MiB
  madvise(base, bytes, MADV_DONTDUMP);
  return base;
}

void* reserve_or_fail(size_t bytes, size_t alignment) {
  if (void* base = reserve(bytes, alignment)) return base;
  fail("the host has no address space for " + std::to_string(bytes) +
           " bytes of emulated memory: " + std::strerror(errno),
       "it costs no memory, but the limits `ulimit -v` and vm.overcommit_memory=2 forbid it; lift them");
}

struct Range {
  char* base = nullptr;
  size_t bytes = 0;
};

// A granule that small requests share.
class SharedGranule {
 public:
  explicit SharedGranule(void* base) : base_(static_cast<char*>(base)) { free_[0] = granule_bytes; }

  char* base() const { return base_; }
  bool empty() const { return free_.size() == 1 && free_.begin()->second == granule_bytes; }

  void* take(size_t bytes) {
    auto fits = std::find_if(free_.begin(), free_.end(), [bytes](const auto& gap) { return gap.second >= bytes; });
    if (fits == free_.end()) return nullptr;
    auto [offset, gap] = *fits;
    free_.erase(fits);
    if (gap > bytes) free_[offset + bytes] = gap - bytes;
    return base_ + offset;
  }

  void give_back(void* pointer, size_t bytes) {
    auto gap = free_.emplace(static_cast<char*>(pointer) - base_, bytes).first;
    auto next = std::next(gap);
    if (next != free_.end() && gap->first + gap->second == next->first) {
      gap->second += next->second;
      free_.erase(next);
    }
    if (gap == free_.begin()) return;
    auto before = std::prev(gap);
    if (before->first + before->second == gap->first) {
      before->second += gap->second;
      free_.erase(gap);
    }
  }

 private:
  char* base_;
  std::map<size_t, size_t> free_;  // offset → bytes
};

class Device {
 public:
  explicit Device(uint64_t capacity) : capacity_(capacity) {}

  uint64_t used() const { return used_; }
  uint64_t peak() const { return peak_; }

  // Null: no room. `bytes` is a multiple of small_bytes.
  void* take(size_t bytes) {
    if (bytes > small_limit_bytes) return take_granules(rounded_up(bytes, granule_bytes));
    for (auto& granule : shared_) {
      if (void* pointer = granule->take(bytes)) return pointer;
    }
    void* base = take_granules(granule_bytes);
    if (!base) return nullptr;
    shared_.push_back(std::make_unique<SharedGranule>(base));
    return shared_.back()->take(bytes);
  }

  // The granules that are free now, for the caller to unmap.
  Range give_back(void* pointer, size_t bytes) {
    if (bytes > small_limit_bytes) return give_back_granules(pointer, rounded_up(bytes, granule_bytes));
    auto holder = std::find_if(shared_.begin(), shared_.end(), [pointer](const auto& granule) {
      return pointer >= granule->base() && pointer < granule->base() + granule_bytes;
    });
    (*holder)->give_back(pointer, bytes);
    if (!(*holder)->empty()) return {};
    Range free = give_back_granules((*holder)->base(), granule_bytes);
    shared_.erase(holder);
    return free;
  }

  bool charge(size_t bytes) {
    if (bytes > capacity_ - used_) return false;
    used_ += bytes;
    peak_ = std::max(peak_, used_);
    return true;
  }

  void discharge(size_t bytes) { used_ -= bytes; }

 private:
  void* take_granules(size_t bytes) { return charge(bytes) ? reserve_or_fail(bytes, granule_bytes) : nullptr; }

  Range give_back_granules(void* base, size_t bytes) {
    discharge(bytes);
    return {static_cast<char*>(base), bytes};
  }

  uint64_t capacity_;
  uint64_t used_ = 0;
  uint64_t peak_ = 0;
  std::vector<std::unique_ptr<SharedGranule>> shared_;
};

class Table {
 public:
  Table() {
    for (int i = 0; i < device::count(); ++i) devices_.emplace_back(config().memory_bytes - config().context_bytes);
  }

  void* allocate(int device, size_t bytes) {
    device::note_use(device);
    if (bytes > config().memory_bytes) return nullptr;  // also keeps the rounding from overflowing
    size_t taken = small_footprint(bytes);
    std::unique_lock lock(mutex_);
    void* base = devices_[device].take(taken);
    if (base) insert({base, bytes, Kind::device, device}, taken);
    return base;
  }

  void* allocate_pinned(size_t bytes) {
    size_t taken = rounded_up(std::max<size_t>(bytes, 1), page_bytes);
    void* base = reserve_or_fail(taken, page_bytes);
    std::unique_lock lock(mutex_);
    insert({base, bytes, Kind::pinned, device::current()}, taken);
    return base;
  }

  bool release(void* base) {
    Region region = find(base);
    if (region.base != base || region.kind == Kind::registered || region.mapped) return false;
    // Before the address can be given out again.
    if (region.kind == Kind::device) values::mark_unknown(base, region.bytes);
    std::optional<Range> free = take_out(base);
    if (!free) return false;
    if (free->bytes == 0) return true;
    if (region.kind == Kind::device) ipc::forget(free->base, free->bytes);
    munmap(free->base, free->bytes);
    return true;
  }

  void show(void* base, size_t bytes, int device) {
    std::unique_lock lock(mutex_);
    Region region{base, bytes, Kind::device, device, true};
    auto next = entries_.lower_bound(base);
    if (next != entries_.end() && continues(region, next->second.region)) {
      region.bytes += next->second.region.bytes;
      next = entries_.erase(next);
    }
    if (next != entries_.begin() && continues(std::prev(next)->second.region, region)) {
      Entry& before = std::prev(next)->second;
      before.region.bytes += region.bytes;
      return;
    }
    insert(region, 0);
  }

  void hide(void* base, size_t bytes) {
    std::unique_lock lock(mutex_);
    auto found = std::prev(entries_.upper_bound(base));
    Region whole = found->second.region;
    entries_.erase(found);
    char* begin = static_cast<char*>(whole.base);
    char* end = begin + whole.bytes;
    char* hole = static_cast<char*>(base);
    if (begin < hole) insert({begin, static_cast<size_t>(hole - begin), Kind::device, whole.device, true}, 0);
    char* after = hole + bytes;
    if (after < end) insert({after, static_cast<size_t>(end - after), Kind::device, whole.device, true}, 0);
  }

  bool charge(int device, size_t bytes) {
    std::unique_lock lock(mutex_);
    return devices_[device].charge(bytes);
  }

  void discharge(int device, size_t bytes) {
    std::unique_lock lock(mutex_);
    devices_[device].discharge(bytes);
  }

  bool register_host(void* base, size_t bytes) {
    std::unique_lock lock(mutex_);
    if (overlaps(base, bytes)) return false;
    insert({base, bytes, Kind::registered, device::current()}, bytes);
    return true;
  }

  bool unregister_host(void* base) {
    std::unique_lock lock(mutex_);
    auto found = entries_.find(base);
    if (found == entries_.end() || found->second.region.kind != Kind::registered) return false;
    entries_.erase(found);
    return true;
  }

  Region find(const void* pointer) const {
    std::shared_lock lock(mutex_);
    auto after = entries_.upper_bound(const_cast<void*>(pointer));
    if (after == entries_.begin()) return {};
    const Region& region = std::prev(after)->second.region;
    bool inside = pointer < static_cast<char*>(region.base) + std::max<size_t>(region.bytes, 1);
    return inside ? region : Region{};
  }

  void usage(int device, size_t* free_bytes, size_t* total_bytes) const {
    std::shared_lock lock(mutex_);
    *total_bytes = config().memory_bytes;
    *free_bytes = config().memory_bytes - config().context_bytes - devices_[device].used();
  }

  uint64_t peak() const {
    std::shared_lock lock(mutex_);
    uint64_t most = 0;
    for (const Device& device : devices_) most = std::max(most, device.peak());
    return most;
  }

 private:
  struct Entry {
    Region region;
    size_t taken;  // bytes with rounding; 0 of what is mapped
  };

  static bool continues(const Region& region, const Region& next) {
    return region.mapped && next.mapped && region.device == next.device &&
           static_cast<char*>(region.base) + region.bytes == next.base;
  }

  // What to unmap; nothing if the region is gone.
  std::optional<Range> take_out(void* base) {
    std::unique_lock lock(mutex_);
    auto found = entries_.find(base);
    if (found == entries_.end()) return {};
    Entry entry = found->second;
    entries_.erase(found);
    if (entry.region.kind == Kind::device) return devices_[entry.region.device].give_back(base, entry.taken);
    return Range{static_cast<char*>(base), entry.taken};
  }

  void insert(const Region& region, size_t taken) { entries_[region.base] = {region, taken}; }

  bool overlaps(void* base, size_t bytes) const {
    char* begin = static_cast<char*>(base);
    auto next = entries_.lower_bound(base);
    if (next != entries_.end() && static_cast<char*>(next->first) < begin + bytes) return true;
    if (next == entries_.begin()) return false;
    const Region& before = std::prev(next)->second.region;
    return static_cast<char*>(before.base) + before.bytes > begin;
  }

  mutable std::shared_mutex mutex_;
  std::vector<Device> devices_;
  std::map<void*, Entry> entries_;  // by base
};

Table& table() {
  static Table* regions = new Table;  // never destroyed: used by exit handlers
  return *regions;
}

}  // namespace

void* reserve_addresses(size_t bytes) { return reserve_or_fail(bytes, granule_bytes); }
size_t footprint(size_t bytes) {
  size_t taken = small_footprint(bytes);
  return taken > small_limit_bytes ? rounded_up(taken, granule_bytes) : taken;
}
void* allocate(int device, size_t bytes) { return table().allocate(device, bytes); }
void* allocate_pinned(size_t bytes) { return table().allocate_pinned(bytes); }
bool release(void* base) { return table().release(base); }
bool is_allocation(const void* pointer, Kind kind) {
  Region region = find(pointer);
  return region.base == pointer && region.kind == kind && !region.mapped;
}
bool register_host(void* base, size_t bytes) { return table().register_host(base, bytes); }
bool unregister_host(void* base) { return table().unregister_host(base); }
bool charge(int device, size_t bytes) {
  device::note_use(device);
  return table().charge(device, bytes);
}
void discharge(int device, size_t bytes) { table().discharge(device, bytes); }
void show(void* base, size_t bytes, int device) { table().show(base, bytes, device); }
void hide(void* base, size_t bytes) { table().hide(base, bytes); }
Region find(const void* pointer) { return table().find(pointer); }
void require_device(const void* pointer, size_t bytes, const std::string& user) {
  Region region = find(pointer);
  bool there = region.kind == Kind::device || region.kind == Kind::managed;
  if (there && static_cast<const char*>(pointer) + bytes <= static_cast<char*>(region.base) + region.bytes) return;
  fail(user + " in a CUDA graph uses device memory that has been freed",
       "on a real GPU this is an illegal memory access; keep the tensors that a graph uses for as long as it is "
       "launched");
}
void usage(int device, size_t* free_bytes, size_t* total_bytes) { table().usage(device, free_bytes, total_bytes); }
uint64_t peak_bytes() { return table().peak(); }

}  // namespace phantora::memory
