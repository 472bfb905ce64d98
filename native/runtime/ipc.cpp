#include "phantora/ipc.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "phantora/config.h"
#include "phantora/device.h"
#include "phantora/memory.h"
#include "phantora/values.h"
#include "phantora/virtual_memory.h"
#include "physical.h"

namespace phantora::ipc {

namespace {

using memory::granule_bytes;

// What a MemoryHandle holds.
struct Content {
  physical::Place place;
  uint64_t offset;  // of the memory in its granules
  uint64_t bytes;   // of the granules
};
static_assert(sizeof(Content) <= sizeof(MemoryHandle));

// Moves the granules at `base` into a stretch of our file, bytes and states, under the same addresses.
struct Shared {
  physical::Extent extent;
  uint8_t* states;

  static Shared move(char* base, size_t bytes) {
    values::Lock lock;  // nobody computes meanwhile
    Shared shared{physical::take(bytes), nullptr};
    auto copy = static_cast<char*>(mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    physical::map(shared.extent, copy, true);
    values::for_each_stretch(base, bytes, [&](size_t offset, size_t length, values::State state) {
      if (state != values::State::unknown) std::memcpy(copy + offset, base + offset, length);
    });
    physical::map(shared.extent, base, true);
    munmap(copy, bytes);
    shared.states = physical::map_states(shared.extent);
    values::share(base, bytes, shared.states);
    return shared;
  }
};

class Table {
 public:
  bool export_memory(void* pointer, MemoryHandle* handle) {
    memory::Region region = memory::find(pointer);
    if (region.kind != memory::Kind::device || region.mapped) return false;
    char* memory = static_cast<char*>(region.base);
    size_t offset = reinterpret_cast<uintptr_t>(memory) % granule_bytes;
    char* base = memory - offset;
    size_t bytes = (offset + region.bytes + granule_bytes - 1) / granule_bytes * granule_bytes;
    std::lock_guard lock(mutex_);
    auto found = exported_.find(base);
    if (found == exported_.end()) found = exported_.emplace(base, Shared::move(base, bytes)).first;
    physical::Card card{
        .bytes = bytes, .node = config().node, .device = device::physical(region.device), .rank = config().rank};
    Content content{physical::publish(found->second.extent, card), offset, bytes};
    std::memset(handle, 0, sizeof *handle);
    std::memcpy(handle->bytes, &content, sizeof content);
    return true;
  }

  void forget(void* base, size_t bytes) {
    std::lock_guard lock(mutex_);
    auto found = exported_.find(static_cast<char*>(base));
    if (found == exported_.end()) return;
    values::unshare(base, bytes);
    physical::unmap_states(found->second.extent, found->second.states);
    physical::withdraw(found->second.extent);
    exported_.erase(found);
  }

  Opened open_memory(const MemoryHandle& handle, void** pointer) {
    Content content;
    std::memcpy(&content, handle.bytes, sizeof content);
    if (content.place.pid == getpid()) return Opened::in_own_process;
    std::lock_guard lock(mutex_);
    auto imported = virtual_memory::import_place(content.place);
    std::optional<virtual_memory::Properties> properties = virtual_memory::properties(imported);
    if (!properties) return Opened::no_such_memory;
    void* base = virtual_memory::reserve(content.bytes, 0, nullptr);
    virtual_memory::map(base, content.bytes, imported, 0);
    virtual_memory::set_access(base, content.bytes, properties->device, virtual_memory::Access::read_write);
    virtual_memory::release(imported);  // the mapping holds it
    *pointer = static_cast<char*>(base) + content.offset;
    opened_[*pointer] = {base, content.bytes};
    return Opened::yes;
  }

  bool close_memory(void* pointer) {
    std::lock_guard lock(mutex_);
    auto found = opened_.find(pointer);
    if (found == opened_.end()) return false;
    auto [base, bytes] = found->second;
    opened_.erase(found);
    virtual_memory::unmap(base, bytes);
    virtual_memory::free_reservation(base, bytes);
    return true;
  }

 private:
  struct Range {
    void* base;
    size_t bytes;
  };

  std::mutex mutex_;
  std::map<char*, Shared> exported_;  // by the first of their granules
  std::map<void*, Range> opened_;
};

Table& table() {
  static Table* instance = new Table;  // never destroyed: used by exit handlers
  return *instance;
}

}  // namespace

bool export_memory(void* pointer, MemoryHandle* handle) { return table().export_memory(pointer, handle); }
Opened open_memory(const MemoryHandle& handle, void** pointer) { return table().open_memory(handle, pointer); }
bool close_memory(void* pointer) { return table().close_memory(pointer); }
void forget(void* base, size_t bytes) { table().forget(base, bytes); }

}  // namespace phantora::ipc
