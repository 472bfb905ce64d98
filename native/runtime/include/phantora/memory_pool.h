// Stream-ordered memory. What is freed stays with its pool, and taken from its device, until the pool gives it out
// again, in whatever pieces, or trims itself: when the host waits for the device while the pool holds more than its
// threshold, and when the device has no room left.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "phantora/export.h"
#include "phantora/recorder.h"

namespace phantora {

class PHANTORA_EXPORT MemoryPool {
 public:
  struct Usage {
    uint64_t now = 0;
    uint64_t high = 0;
  };

  static MemoryPool& of_device(int device);  // its default pool
  // When its turn on the stream comes, or at once. What is of no pool is released.
  static void free(StreamId stream, void* pointer);
  static void free(void* pointer);
  static void note_synchronization();

  explicit MemoryPool(int device) : device_(device) {}
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  int device() const { return device_; }
  void* allocate(size_t bytes);  // nullptr: no room on the device
  void trim(uint64_t bytes);     // until no more than that is reserved, or all of it is in use

  uint64_t threshold() const;
  void set_threshold(uint64_t bytes);
  Usage used() const;
  Usage reserved() const;
  void reset_used_high();
  void reset_reserved_high();
  // What it was told of how to reuse memory; it reuses all that it has.
  int reuse(size_t way) const;
  void set_reuse(size_t way, int allowed);

 private:
  struct Piece;
  struct Table;

  static Table& table();
  static std::optional<Piece> take_out(void* pointer);

  void note_turn(uint64_t taken);
  void keep(uint64_t bytes);
  void settle();

  // All under the table's lock.
  const int device_;
  uint64_t threshold_ = 0;
  uint64_t held_ = 0;     // what the pieces in use take of the device
  uint64_t free_ = 0;     // what those that were freed took
  uint64_t waiting_ = 0;  // of that, what has not had its turn
  uint64_t charged_ = 0;  // of the rest, what the device counts as taken
  uint64_t reserved_high_ = 0;
  Usage used_;
  std::array<int, 3> reuse_ = {1, 1, 1};
};

}  // namespace phantora
