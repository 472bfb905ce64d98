#include "phantora/virtual_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "multicast.h"
#include "phantora/config.h"
#include "phantora/device.h"
#include "phantora/memory.h"
#include "phantora/recorder.h"
#include "phantora/values.h"
#include "physical.h"

namespace phantora::virtual_memory {

namespace {

using memory::granule_bytes;

constexpr size_t page_bytes = 4096;

// Addresses that nobody may touch.
void* map_nothing(void* at, size_t bytes, int flags) {
  void* mapped = mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
  if (mapped != MAP_FAILED) return mapped;
  fail(
      "the host has no address space for a reservation of " + std::to_string(bytes) + " bytes: " + std::strerror(errno),
      "it costs no memory, but the limits `ulimit -v` and vm.overcommit_memory=2 forbid it; lift them");
}

struct Physical {
  physical::Extent extent;
  Properties properties;
  int rank = config().rank;  // that made it
  bool imported = false;
  bool exported = false;
  int references = 1;
  int mappings = 0;
  uint8_t* states = nullptr;                     // of shared memory: see values::share
  std::shared_ptr<multicast::Object> multicast;  // null: it is memory
};

struct Mapped {
  size_t bytes;
  Handle handle;
  size_t offset;                 // in the handle's memory
  std::map<int, Access> access;  // by device; those without are absent
};

class Space {
 public:
  void* reserve(size_t bytes, size_t alignment, void* hint) {
    bool sound = bytes != 0 && bytes % page_bytes == 0 && (alignment & (alignment - 1)) == 0;
    if (!sound) return nullptr;
    alignment = std::max(alignment, granule_bytes);
    // A page that belongs to nobody ends each reservation: those of two never touch.
    size_t span = bytes + alignment + page_bytes;
    uintptr_t begin = reinterpret_cast<uintptr_t>(map_nothing(hint, span, 0));
    uintptr_t base = (begin + alignment - 1) / alignment * alignment;
    if (base > begin) munmap(reinterpret_cast<void*>(begin), base - begin);
    munmap(reinterpret_cast<void*>(base + bytes + page_bytes), begin + span - base - bytes - page_bytes);
    std::lock_guard lock(mutex_);
    reservations_[reinterpret_cast<char*>(base)] = bytes;
    return reinterpret_cast<void*>(base);
  }

  bool free_reservation(void* base, size_t bytes) {
    std::lock_guard lock(mutex_);
    auto found = reservations_.find(static_cast<char*>(base));
    if (found == reservations_.end() || found->second != bytes || !is_free(found->first, bytes)) return false;
    reservations_.erase(found);
    munmap(base, bytes + page_bytes);
    return true;
  }

  Handle create(size_t bytes, const Properties& properties) {
    if (!memory::charge(properties.device, bytes)) return 0;
    return add({physical::take(bytes), properties});
  }

  Handle create_multicast(const MulticastProperties& properties) {
    auto object = multicast::Object::create(properties.bytes, properties.devices);
    return add_multicast(object, properties.handle_types, false);
  }

  bool add_device(Handle handle, int device) {
    auto object = object_of(handle);
    return object && object->add_device(device::physical(device));
  }

  bool bind(Handle handle, size_t offset, Handle memory, size_t memory_offset, size_t bytes) {
    auto object = object_of(handle);
    if (!object || !is_range(object->extent(), offset, bytes)) return false;
    if (handle_types(handle) != 0 && handle_types(memory) == 0) return false;  // CUDA's rule
    std::optional<multicast::Binding> binding = contribution(memory, memory_offset, bytes);
    if (!binding || !object->has_device(binding->device)) return false;
    object->wait_for_devices();
    binding->offset = offset;
    return object->bind(*binding);
  }

  bool bind(Handle handle, size_t offset, const void* at, size_t bytes) {
    Handle memory = retain(at);
    if (!memory) return false;
    std::optional<size_t> memory_offset = offset_in_handle(at);
    bool bound = memory_offset && bind(handle, offset, memory, *memory_offset, bytes);
    release(memory);
    return bound;
  }

  bool unbind(Handle handle, int device, size_t offset, size_t bytes) {
    auto object = object_of(handle);
    return object && object->unbind(device::physical(device), offset, bytes);
  }

  bool release(Handle handle) {
    std::lock_guard lock(mutex_);
    auto found = physicals_.find(handle);
    if (found == physicals_.end() || found->second.references == 0) return false;
    --found->second.references;
    free_if_unused(found);
    return true;
  }

  bool map(void* at, size_t bytes, Handle handle, size_t offset) {
    if (address(at) % granule_bytes != 0) return false;
    if (auto object = object_of(handle)) object->wait_for_devices();
    std::lock_guard lock(mutex_);
    auto found = physicals_.find(handle);
    if (found == physicals_.end() || found->second.references == 0) return false;
    Physical& physical = found->second;
    char* base = static_cast<char*>(at);
    bool fits = is_range(physical.extent, offset, bytes);
    if (!fits || !is_reserved(base, bytes) || !is_free(base, bytes)) return false;
    if (++physical.mappings > 1) share(physical, handle);
    physical::map({physical.extent.file, physical.extent.offset + offset, bytes}, at, false);
    madvise(at, bytes, MADV_NOHUGEPAGE);  // a touched byte must not cost 2 MiB
    mappings_[base] = {bytes, handle, offset, {}};
    if (physical.multicast) {
      relay(at, bytes, physical.multicast, offset);
    } else if (physical.states) {
      values::share(at, bytes, physical.states + offset);
    }
    return true;
  }

  bool unmap(void* at, size_t bytes) {
    std::lock_guard lock(mutex_);
    if (!is_covered(at, bytes)) return false;
    char* end = static_cast<char*>(at) + bytes;
    auto mapped = mappings_.find(static_cast<char*>(at));
    while (mapped != mappings_.end() && mapped->first < end) {
      take_down(mapped->first, mapped->second);
      mapped = mappings_.erase(mapped);
    }
    return true;
  }

  bool set_access(void* at, size_t bytes, int device, Access access) {
    std::lock_guard lock(mutex_);
    if (!is_covered(at, bytes)) return false;
    char* end = static_cast<char*>(at) + bytes;
    auto mapped = mappings_.find(static_cast<char*>(at));
    for (; mapped != mappings_.end() && mapped->first < end; ++mapped) {
      set_access(mapped->first, mapped->second, device, access);
    }
    return true;
  }

  std::optional<Access> access(const void* at, int device) {
    std::lock_guard lock(mutex_);
    auto mapped = find(at);
    if (mapped == mappings_.end()) return {};
    auto granted = mapped->second.access.find(device);
    return granted == mapped->second.access.end() ? Access::none : granted->second;
  }

  Handle retain(const void* at) {
    std::lock_guard lock(mutex_);
    auto mapped = find(at);
    if (mapped == mappings_.end()) return 0;
    ++physicals_.at(mapped->second.handle).references;
    return mapped->second.handle;
  }

  std::optional<Properties> properties(Handle handle) {
    std::lock_guard lock(mutex_);
    auto found = physicals_.find(handle);
    if (found == physicals_.end() || found->second.multicast) return {};
    return found->second.properties;
  }

  uint32_t handle_types(Handle handle) {
    std::lock_guard lock(mutex_);
    auto found = physicals_.find(handle);
    return found == physicals_.end() ? 0 : found->second.properties.handle_types;
  }

  std::optional<Mapping> mapping(const void* at) {
    std::lock_guard lock(mutex_);
    auto mapped = find(at);
    return mapped == mappings_.end() ? std::nullopt : std::optional(Mapping{mapped->first, mapped->second.bytes});
  }

  std::optional<Origin> origin(const void* at) {
    std::lock_guard lock(mutex_);
    auto mapped = find(at);
    if (mapped == mappings_.end()) return {};
    const Physical& physical = physicals_.at(mapped->second.handle);
    if (physical.multicast) return {};
    uint64_t place = physical.extent.offset + mapped->second.offset + (static_cast<const char*>(at) - mapped->first);
    return Origin{physical.rank, place, device::physical(physical.properties.device)};
  }

  bool any_foreign() const { return any_foreign_; }

  bool is_foreign(const void* at) {
    if (!any_foreign_) return false;
    std::lock_guard lock(mutex_);
    auto mapped = find(at);
    if (mapped == mappings_.end()) return false;
    const Physical& physical = physicals_.at(mapped->second.handle);
    return physical.imported || physical.multicast;
  }

  int export_descriptor(Handle handle) {
    std::lock_guard lock(mutex_);
    auto found = physicals_.find(handle);
    if (found == physicals_.end()) return -1;
    Physical& physical = found->second;
    physical.exported = true;
    share(physical, handle);
    return physical::export_descriptor(physical.extent, card(physical));
  }

  Handle import(const physical::Import& import) {
    const physical::Card& card = import.card;
    if (card.node == config().node && card.device == multicast::no_device) {
      return add_multicast(std::make_shared<multicast::Object>(import.extent), card.handle_types, true);
    }
    for (int device = 0; device < device::count(); ++device) {
      if (card.node != config().node || device::physical(device) != card.device) continue;
      Physical physical{import.extent, {device, card.handle_types, card.compression, card.rdma_capable, card.usage}};
      physical.imported = true;
      physical.rank = card.rank;
      any_foreign_ = true;
      physical.states = physical::map_states(import.extent);
      return add(physical);
    }
    return 0;
  }

 private:
  using Physicals = std::unordered_map<Handle, Physical>;
  using Mappings = std::map<char*, Mapped>;

  static uintptr_t address(const void* p) { return reinterpret_cast<uintptr_t>(p); }

  static bool is_range(const physical::Extent& extent, size_t offset, size_t bytes) {
    return bytes > 0 && (offset | bytes) % granule_bytes == 0 && bytes <= extent.bytes &&
           offset <= extent.bytes - bytes;
  }

  static physical::Card card(const Physical& physical) {
    const Properties& p = physical.properties;
    int device = physical.multicast ? multicast::no_device : device::physical(p.device);
    return {physical.extent.bytes, config().node, device,         config().rank,
            p.handle_types,        p.compression, p.rdma_capable, p.usage};
  }

  static void relay(void* at, size_t bytes, const std::shared_ptr<multicast::Object>& object, size_t offset) {
    values::relay(at, bytes, [object, offset](size_t place, size_t length) { object->stored(offset + place, length); });
  }

  // Device 0 is what CUDA says of a multicast address, whichever devices are behind it.
  Handle add_multicast(std::shared_ptr<multicast::Object> object, uint32_t handle_types, bool imported) {
    Physical physical{object->extent(), {0, handle_types}};
    physical.imported = imported;
    physical.multicast = std::move(object);
    any_foreign_ = true;
    return add(physical);
  }

  // Null: it is none.
  std::shared_ptr<multicast::Object> object_of(Handle handle) {
    std::lock_guard lock(mutex_);
    auto found = physicals_.find(handle);
    return found == physicals_.end() || found->second.references == 0 ? nullptr : found->second.multicast;
  }

  std::optional<multicast::Binding> contribution(Handle handle, size_t offset, size_t bytes) {
    std::lock_guard lock(mutex_);
    auto found = physicals_.find(handle);
    if (found == physicals_.end() || found->second.multicast) return {};
    Physical& physical = found->second;
    if (!is_range(physical.extent, offset, bytes)) return {};
    physical.exported = true;
    share(physical, handle);
    physical::Place place = physical::publish(physical.extent, card(physical));
    return multicast::Binding{device::physical(physical.properties.device), 0, bytes, place, offset};
  }

  std::optional<size_t> offset_in_handle(const void* at) {
    std::lock_guard lock(mutex_);
    auto mapped = find(at);
    if (mapped == mappings_.end()) return {};
    return mapped->second.offset + (static_cast<const char*>(at) - mapped->first);
  }

  Handle add(const Physical& physical) {
    std::lock_guard lock(mutex_);
    physicals_.emplace(++last_handle_, physical);
    return last_handle_;
  }

  // What is exported may be mapped elsewhere, now or later: its bytes stay as long as its file.
  void free_if_unused(Physicals::iterator found) {
    Physical& physical = found->second;
    if (physical.references > 0 || physical.mappings > 0) return;
    if (physical.states) physical::unmap_states(physical.extent, physical.states);
    if (!physical.imported && !physical.multicast) memory::discharge(physical.properties.device, physical.extent.bytes);
    if (!physical.imported && !physical.exported) physical::give_back(physical.extent);
    physicals_.erase(found);
  }

  // From now on the states of its bytes lie beside them, for all who see them.
  void share(Physical& physical, Handle handle) {
    if (physical.states || physical.multicast) return;
    physical.states = physical::map_states(physical.extent);
    for (auto& [base, mapped] : mappings_) {
      if (mapped.handle == handle) values::share(base, mapped.bytes, physical.states + mapped.offset);
    }
  }

  void set_access(char* base, Mapped& mapped, int device, Access access) {
    bool was_visible = !mapped.access.empty();
    mapped.access.erase(device);
    if (access != Access::none) mapped.access[device] = access;
    bool visible = !mapped.access.empty();
    if (visible == was_visible) return;
    // The host computes for all devices of the process, so it may touch what any of them may.
    mprotect(base, mapped.bytes, visible ? PROT_READ | PROT_WRITE : PROT_NONE);
    if (visible) {
      memory::show(base, mapped.bytes, physicals_.at(mapped.handle).properties.device);
    } else {
      memory::hide(base, mapped.bytes);
    }
  }

  void take_down(char* base, Mapped& mapped) {
    auto found = physicals_.find(mapped.handle);
    if (!mapped.access.empty()) memory::hide(base, mapped.bytes);
    if (found->second.states || found->second.multicast) {
      values::unshare(base, mapped.bytes);
    } else {
      values::mark_unknown(base, mapped.bytes);
    }
    map_nothing(base, mapped.bytes, MAP_FIXED);
    --found->second.mappings;
    free_if_unused(found);
  }

  Mappings::iterator find(const void* at) {
    auto after = mappings_.upper_bound(static_cast<char*>(const_cast<void*>(at)));
    if (after == mappings_.begin()) return mappings_.end();
    auto mapped = std::prev(after);
    return at < mapped->first + mapped->second.bytes ? mapped : mappings_.end();
  }

  bool is_reserved(char* base, size_t bytes) const {
    auto after = reservations_.upper_bound(base);
    if (after == reservations_.begin()) return false;
    const auto& [begin, size] = *std::prev(after);
    return bytes <= size && base - begin <= static_cast<ptrdiff_t>(size - bytes);
  }

  bool is_free(char* base, size_t bytes) {
    auto next = mappings_.lower_bound(base);
    if (next != mappings_.end() && next->first < base + bytes) return false;
    return find(base) == mappings_.end();
  }

  // Whether whole mappings fill the range.
  bool is_covered(void* at, size_t bytes) const {
    char* position = static_cast<char*>(at);
    char* end = position + bytes;
    while (position < end) {
      auto mapped = mappings_.find(position);
      if (mapped == mappings_.end()) return false;
      position += mapped->second.bytes;
    }
    return bytes > 0 && position == end;
  }

  std::mutex mutex_;
  std::map<char*, size_t> reservations_;
  Mappings mappings_;
  Physicals physicals_;
  Handle last_handle_ = 0;
  std::atomic<bool> any_foreign_{false};
};

Space& space() {
  static Space* instance = new Space;  // never destroyed: used by exit handlers
  return *instance;
}

}  // namespace

void* reserve(size_t bytes, size_t alignment, void* hint) { return space().reserve(bytes, alignment, hint); }
bool free_reservation(void* base, size_t bytes) { return space().free_reservation(base, bytes); }
Handle create(size_t bytes, const Properties& properties) { return space().create(bytes, properties); }
bool release(Handle handle) { return space().release(handle); }
bool map(void* at, size_t bytes, Handle handle, size_t offset) { return space().map(at, bytes, handle, offset); }
bool unmap(void* at, size_t bytes) { return space().unmap(at, bytes); }
bool set_access(void* at, size_t bytes, int device, Access access) {
  return space().set_access(at, bytes, device, access);
}
std::optional<Access> access(const void* at, int device) { return space().access(at, device); }
Handle retain(const void* at) { return space().retain(at); }
std::optional<Properties> properties(Handle handle) { return space().properties(handle); }
std::optional<Mapping> mapping(const void* at) { return space().mapping(at); }
std::optional<Origin> origin(const void* at) { return space().origin(at); }
bool any_foreign() { return space().any_foreign(); }
bool is_foreign(const void* at) { return space().is_foreign(at); }
uint32_t handle_types(Handle handle) { return space().handle_types(handle); }
Handle create_multicast(const MulticastProperties& properties) { return space().create_multicast(properties); }
bool add_device(Handle multicast, int device) { return space().add_device(multicast, device); }
bool bind(Handle multicast, size_t offset, Handle memory, size_t memory_offset, size_t bytes) {
  return space().bind(multicast, offset, memory, memory_offset, bytes);
}
bool bind(Handle multicast, size_t offset, const void* memory, size_t bytes) {
  return space().bind(multicast, offset, memory, bytes);
}
bool unbind(Handle multicast, int device, size_t offset, size_t bytes) {
  return space().unbind(multicast, device, offset, bytes);
}
int export_descriptor(Handle handle) { return space().export_descriptor(handle); }

Handle import_descriptor(int descriptor) {
  std::optional<physical::Import> import = physical::import_descriptor(descriptor);
  return import ? space().import(*import) : 0;
}

Handle import_place(const physical::Place& place) {
  std::optional<physical::Import> import = physical::import_place(place);
  return import ? space().import(*import) : 0;
}

}  // namespace phantora::virtual_memory
