// Device, pinned and registered memory. Device memory is MAP_NORESERVE host memory: free until a byte is touched.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "phantora/export.h"

namespace phantora {
namespace memory PHANTORA_EXPORT {

inline constexpr size_t granule_bytes = 2u << 20;  // CUDA takes device memory in pieces of this size

enum class Kind { plain, device, pinned, registered, managed };

struct Region {
  void* base = nullptr;
  size_t bytes = 0;
  Kind kind = Kind::plain;
  int device = -1;
  bool mapped = false;  // by virtual_memory.h: neighbouring mappings on one device are one region
};

// nullptr when the device's capacity (config().memory_bytes) would be exceeded; counted in 2 MiB granules as CUDA does
// for large requests (512 bytes within a granule shared by small ones).
void* allocate(int device, size_t bytes);
size_t footprint(size_t bytes);  // what that takes of the device, its share of a granule if it is small
void* allocate_pinned(size_t bytes);
bool release(void* base);
bool is_allocation(const void* pointer, Kind kind);  // release() would take it
bool register_host(void* base, size_t bytes);
bool unregister_host(void* base);
Region find(const void* pointer);  // the region that holds it; kind plain if none of ours
// Ends the rank if the memory that `user` works on is not all there any more: a graph may be launched after what its
// nodes use has been freed.
void require_device(const void* pointer, size_t bytes, const std::string& user);
void usage(int device, size_t* free_bytes, size_t* total_bytes);
// Addresses that count for no device and may be touched; for the caller to unmap. Ends the rank if the host has none.
void* reserve_addresses(size_t bytes);
// For virtual_memory.h: room on a device, in whole granules (false: there is none), and addresses where it is mapped.
bool charge(int device, size_t bytes);
void discharge(int device, size_t bytes);
void show(void* base, size_t bytes, int device);
void hide(void* base, size_t bytes);

uint64_t peak_bytes();  // most device memory in use at once, over all devices, without the context

}  // namespace memory PHANTORA_EXPORT
}  // namespace phantora
