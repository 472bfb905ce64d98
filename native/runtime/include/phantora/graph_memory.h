// Memory that CUDA graphs allocate for themselves. Each allocation has an address of its own for good; physical memory
// stands behind it from a launch until it is freed. What graphs need at once is taken from the device when they are
// launched, and stays theirs until it is trimmed, as with CUDA.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "phantora/export.h"

namespace phantora {
namespace graph_memory PHANTORA_EXPORT {

class Chunk;

class Allocation {
 public:
  // Addresses for `bytes` on the device. Nothing is taken from it.
  static std::shared_ptr<Allocation> make(int device, size_t bytes);
  ~Allocation();
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;

  void* pointer() const { return pointer_; }
  size_t bytes() const { return bytes_; }
  int device() const { return device_; }

 private:
  Allocation(std::shared_ptr<Chunk> chunk, void* pointer, int device, size_t bytes);

  const std::shared_ptr<Chunk> chunk_;
  void* const pointer_;
  const int device_;
  const size_t bytes_;
};

using AllocationPtr = std::shared_ptr<Allocation>;

AllocationPtr find(const void* pointer);     // null: no allocation of a graph begins there
bool free(const AllocationPtr& allocation);  // outside of graphs; false: no launch has allocated it, or it is freed

// What one launch of a graph does, in an order that its dependencies allow.
struct Event {
  AllocationPtr allocation;
  bool frees = false;
};

class Usage {
 public:
  Usage() = default;
  explicit Usage(const std::vector<Event>& events);

  bool empty() const { return needs_.empty() && frees_.empty(); }

  enum class Start { ready, still_allocated, out_of_memory };
  // Takes what a launch needs. What its last one left allocated is freed if `frees_first`.
  Start start(bool frees_first);

 private:
  struct Need {
    int device;
    uint64_t bytes;  // at once, of what the launch allocates
  };

  std::vector<Need> needs_;
  std::vector<AllocationPtr> leaves_;  // allocated, and not freed by the graph
  std::vector<AllocationPtr> frees_;   // allocated by another
};

// cudaGraphMemAttributeType.
enum class Attribute : int { used = 0, used_high = 1, reserved = 2, reserved_high = 3 };
uint64_t get(int device, Attribute attribute);
void reset_high(int device, Attribute attribute);
void trim(int device);  // what no allocation is on goes back to the device

}  // namespace graph_memory PHANTORA_EXPORT
}  // namespace phantora
