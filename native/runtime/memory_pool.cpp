#include "phantora/memory_pool.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "phantora/memory.h"
#include "phantora/values.h"

namespace phantora {

struct MemoryPool::Piece {
  MemoryPool* pool;
  uint64_t bytes;
  uint64_t taken;  // of the device
};

struct MemoryPool::Table {
  std::mutex mutex;
  std::map<int, std::unique_ptr<MemoryPool>> of_device;
  std::map<void*, Piece> pieces;  // in use
};

// Never destroyed: used by exit handlers.
MemoryPool::Table& MemoryPool::table() {
  static Table* table = new Table;
  return *table;
}

MemoryPool& MemoryPool::of_device(int device) {
  std::lock_guard lock(table().mutex);
  std::unique_ptr<MemoryPool>& pool = table().of_device[device];
  if (!pool) pool = std::make_unique<MemoryPool>(device);
  return *pool;
}

void* MemoryPool::allocate(size_t bytes) {
  std::lock_guard lock(table().mutex);
  uint64_t taken = memory::footprint(bytes);
  free_ -= std::min(free_, taken);
  settle();
  void* pointer = memory::allocate(device_, bytes);
  if (!pointer && free_ > 0) {
    keep(0);
    pointer = memory::allocate(device_, bytes);
  }
  if (!pointer) return nullptr;
  table().pieces[pointer] = {this, bytes, taken};
  held_ += taken;
  used_.now += bytes;
  used_.high = std::max(used_.high, used_.now);
  reserved_high_ = std::max(reserved_high_, held_ + free_);
  return pointer;
}

// The figures change at once, so that no message that has still to come shows in them.
void MemoryPool::free(StreamId stream, void* pointer) {
  std::optional<Piece> piece = take_out(pointer);
  values::submit(stream, [pointer, piece] {
    memory::release(pointer);
    if (piece) piece->pool->note_turn(piece->taken);
  });
}

void MemoryPool::free(void* pointer) {
  std::optional<Piece> piece = take_out(pointer);
  memory::release(pointer);
  if (piece) piece->pool->note_turn(piece->taken);
}

void MemoryPool::note_synchronization() {
  std::lock_guard lock(table().mutex);
  for (auto& [device, pool] : table().of_device) pool->keep(pool->threshold_);
}

void MemoryPool::trim(uint64_t bytes) {
  std::lock_guard lock(table().mutex);
  keep(bytes);
}

uint64_t MemoryPool::threshold() const {
  std::lock_guard lock(table().mutex);
  return threshold_;
}

void MemoryPool::set_threshold(uint64_t bytes) {
  std::lock_guard lock(table().mutex);
  threshold_ = bytes;
}

MemoryPool::Usage MemoryPool::used() const {
  std::lock_guard lock(table().mutex);
  return used_;
}

MemoryPool::Usage MemoryPool::reserved() const {
  std::lock_guard lock(table().mutex);
  return {held_ + free_, reserved_high_};
}

void MemoryPool::reset_used_high() {
  std::lock_guard lock(table().mutex);
  used_.high = used_.now;
}

void MemoryPool::reset_reserved_high() {
  std::lock_guard lock(table().mutex);
  reserved_high_ = held_ + free_;
}

int MemoryPool::reuse(size_t way) const {
  std::lock_guard lock(table().mutex);
  return reuse_.at(way);
}

void MemoryPool::set_reuse(size_t way, int allowed) {
  std::lock_guard lock(table().mutex);
  reuse_.at(way) = allowed;
}

std::optional<MemoryPool::Piece> MemoryPool::take_out(void* pointer) {
  std::lock_guard lock(table().mutex);
  auto found = table().pieces.find(pointer);
  if (found == table().pieces.end()) return std::nullopt;
  Piece piece = found->second;
  table().pieces.erase(found);
  piece.pool->used_.now -= piece.bytes;
  piece.pool->held_ -= piece.taken;
  piece.pool->free_ += piece.taken;
  piece.pool->waiting_ += piece.taken;
  return piece;
}

void MemoryPool::note_turn(uint64_t taken) {
  std::lock_guard lock(table().mutex);
  waiting_ -= taken;
  settle();
}

void MemoryPool::keep(uint64_t bytes) {
  uint64_t reserved = held_ + free_;
  if (reserved > bytes) free_ -= std::min(free_, reserved - bytes);
  settle();
}

// What waits for its turn is still memory of the device's own.
void MemoryPool::settle() {
  uint64_t wanted = free_ - std::min(free_, waiting_);
  if (wanted < charged_) {
    memory::discharge(device_, charged_ - wanted);
  } else if (wanted > charged_ && !memory::charge(device_, wanted - charged_)) {
    return;
  }
  charged_ = wanted;
}

}  // namespace phantora
