#include "phantora/blocks.h"

#include <map>
#include <mutex>

#include "phantora/memory.h"

namespace phantora::blocks {
namespace {

struct Blocks {
  std::mutex mutex;
  std::map<const char*, size_t> bytes;  // by base
};

Blocks& blocks() {
  static Blocks* blocks = new Blocks;  // never destroyed: used by exit handlers
  return *blocks;
}

// 0: in no block.
size_t reach_in_block(const char* pointer) {
  std::lock_guard lock(blocks().mutex);
  auto after = blocks().bytes.upper_bound(pointer);
  if (after == blocks().bytes.begin()) return 0;
  auto [base, bytes] = *std::prev(after);
  return pointer < base + bytes ? static_cast<size_t>(base + bytes - pointer) : 0;
}

}  // namespace

void note(const void* base, size_t bytes) {
  std::lock_guard lock(blocks().mutex);
  blocks().bytes[static_cast<const char*>(base)] = bytes;
}

void forget(const void* base) {
  std::lock_guard lock(blocks().mutex);
  blocks().bytes.erase(static_cast<const char*>(base));
}

size_t reach(const void* pointer) {
  memory::Region region = memory::find(pointer);
  if (region.kind != memory::Kind::device && region.kind != memory::Kind::managed) return 0;
  const char* at = static_cast<const char*>(pointer);
  if (size_t bytes = reach_in_block(at)) return bytes;
  return static_cast<size_t>(static_cast<const char*>(region.base) + region.bytes - at);
}

}  // namespace phantora::blocks
