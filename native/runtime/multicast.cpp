#include "multicast.h"

#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include "phantora/memory.h"
#include "phantora/recorder.h"
#include "zero_pages.h"

namespace phantora::multicast {

namespace {

enum class SlotState : uint32_t { free = 0, being_filled = 1, bound = 2 };

struct Slot {
  std::atomic<SlotState> state;
  Binding binding;
};

constexpr size_t slot_count = 4096;

}  // namespace

// Of several processes: fresh pages are zeros, and the atomics need no lock that a process could die with.
struct Object::Roster {
  std::atomic<uint32_t> wanted;
  std::atomic<uint64_t> devices;  // a bit each
  Slot slots[slot_count];

  bool is_bound(const Slot& slot) const { return slot.state.load(std::memory_order_acquire) == SlotState::bound; }
};

std::shared_ptr<Object> Object::create(size_t bytes, unsigned devices) {
  static_assert(sizeof(Roster) <= memory::granule_bytes);
  static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<SlotState>::is_always_lock_free);
  physical::Extent whole = physical::take(bytes + memory::granule_bytes);
  auto object = std::make_shared<Object>(physical::Extent{whole.file, whole.offset, bytes});
  object->roster_->wanted = devices;
  return object;
}

// The roster is the granule that follows.
Object::Object(const physical::Extent& extent)
    : extent_(extent),
      roster_(static_cast<Roster*>(
          physical::map({extent.file, extent.offset + extent.bytes, memory::granule_bytes}, nullptr, true))) {}

Object::~Object() { munmap(roster_, memory::granule_bytes); }

bool Object::add_device(int physical_device) {
  uint64_t bit = uint64_t{1} << physical_device;
  uint64_t added = roster_->devices;
  do {
    if (added & bit || std::popcount(added) >= static_cast<int>(roster_->wanted)) return false;
  } while (!roster_->devices.compare_exchange_weak(added, added | bit));
  return true;
}

bool Object::has_device(int physical_device) const { return roster_->devices >> physical_device & 1; }

void Object::wait_for_devices() const {
  while (std::popcount(roster_->devices.load()) < static_cast<int>(roster_->wanted)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

bool Object::bind(const Binding& binding) {
  std::lock_guard lock(mutex_);
  for (const Slot& slot : roster_->slots) {
    const Binding& other = slot.binding;
    bool overlaps = other.offset < binding.offset + binding.bytes && binding.offset < other.offset + other.bytes;
    if (roster_->is_bound(slot) && other.device == binding.device && overlaps) return false;
  }
  for (Slot& slot : roster_->slots) {
    SlotState expected = SlotState::free;
    if (!slot.state.compare_exchange_strong(expected, SlotState::being_filled)) continue;
    slot.binding = binding;
    slot.state.store(SlotState::bound, std::memory_order_release);
    return true;
  }
  return false;
}

bool Object::unbind(int physical_device, uint64_t offset, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  for (Slot& slot : roster_->slots) {
    const Binding& binding = slot.binding;
    if (!roster_->is_bound(slot) || binding.device != physical_device) continue;
    if (binding.offset != offset || binding.bytes != bytes) continue;
    slot.state.store(SlotState::free, std::memory_order_release);
    return true;
  }
  return false;
}

void Object::stored(uint64_t offset, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  for (const Slot& slot : roster_->slots) {
    if (!roster_->is_bound(slot)) continue;
    const Binding binding = slot.binding;
    uint64_t begin = std::max(offset, binding.offset);
    uint64_t end = std::min(offset + bytes, binding.offset + binding.bytes);
    uint8_t* states = begin < end ? states_of(binding.memory) : nullptr;
    if (states) zero_pages(states + binding.memory_offset + (begin - binding.offset), end - begin);
  }
}

// Null: its process has ended.
uint8_t* Object::states_of(const physical::Place& place) {
  auto [found, is_new] = states_.try_emplace({place.pid, place.file, place.offset}, nullptr);
  if (!is_new) return found->second;
  std::optional<physical::Import> memory = physical::import_place(place);
  if (memory) {
    found->second = physical::map_states(memory->extent);
  } else if (kill(place.pid, 0) == 0) {
    fail("memory that process " + std::to_string(place.pid) + " bound to a multicast object cannot be reached",
         "ranks of a node open each other's files in /proc: run them as one user, in one container");
  }
  return found->second;
}

}  // namespace phantora::multicast
