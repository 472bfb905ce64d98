// Reserved addresses, physical device memory, and what is mapped where: behind cuMemAddressReserve, cuMemCreate,
// cuMemMap. Functions that return false, 0 or nothing were asked for what CUDA refuses as an invalid value.
// Thread-safe.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>

#include "phantora/export.h"

namespace phantora {

namespace physical {
struct Place;
}

namespace virtual_memory PHANTORA_EXPORT {

using Handle = uint64_t;  // CUmemGenericAllocationHandle; 0 is none

struct Properties {
  int device = 0;
  uint32_t handle_types = 0;  // how it may be exported
  uint8_t compression = 0;
  uint8_t rdma_capable = 0;
  uint16_t usage = 0;
};

enum class Access : int { none = 0, read = 1, read_write = 3 };

// Addresses that nothing else gets; they cost nothing and count for no device.
void* reserve(size_t bytes, size_t alignment, void* hint);
bool free_reservation(void* base, size_t bytes);

// Physical memory counts for its device from create() until it is neither mapped nor held. 0: the device is full.
Handle create(size_t bytes, const Properties& properties);
bool release(Handle handle);
bool map(void* at, size_t bytes, Handle handle, size_t offset);  // bytes of the handle from `offset`
// Whole mappings. What was in them is unknown when they are mapped again, unless the handle is shared.
bool unmap(void* at, size_t bytes);
// Whole mappings. Memory is found (memory.h) while some device has access to it.
bool set_access(void* at, size_t bytes, int device, Access access);
std::optional<Access> access(const void* at, int device);

Handle retain(const void* at);                        // one more reference to the handle that is mapped there
std::optional<Properties> properties(Handle handle);  // of memory

struct Mapping {
  void* base;
  size_t bytes;
};
std::optional<Mapping> mapping(const void* at);

// Where mapped memory is, alike for all processes that map it: no two bytes of a job have the same.
struct Origin {
  int rank;  // that made it
  uint64_t place;
  int device;  // physical ordinal
};
std::optional<Origin> origin(const void* at);  // none of multicast addresses
bool any_foreign();                            // is any of what follows mapped?
bool is_foreign(const void* at);               // memory of another process, or a multicast address

// Multicast objects are handles too: mapped, released and handed on as memory is, but they take none. What is stored
// through them makes the memory of all devices that is bound to them unknown. map() and bind() block, as CUDA does,
// until all their devices are added.
struct MulticastProperties {
  size_t bytes = 0;
  unsigned devices = 0;  // that will be added
  uint32_t handle_types = 0;
};
Handle create_multicast(const MulticastProperties& properties);
bool add_device(Handle multicast, int device);
bool bind(Handle multicast, size_t offset, Handle memory, size_t memory_offset, size_t bytes);
bool bind(Handle multicast, size_t offset, const void* memory, size_t bytes);  // mapped there
bool unbind(Handle multicast, int device, size_t offset, size_t bytes);
uint32_t handle_types(Handle handle);  // how it may be exported, memory or not; 0: no such handle

// Between processes of a node. A handle that was exported or imported shares its bytes and their states.
int export_descriptor(Handle handle);  // -1: no such handle; the caller closes it
Handle import_descriptor(int descriptor);
Handle import_place(const physical::Place& place);  // for ipc.h

}  // namespace virtual_memory PHANTORA_EXPORT
}  // namespace phantora
