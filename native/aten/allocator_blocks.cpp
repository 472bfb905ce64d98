#include "allocator_blocks.h"

#include <c10/cuda/CUDACachingAllocator.h>

#include <atomic>
#include <mutex>
#include <utility>

#include "device_memory.h"
#include "phantora/blocks.h"

namespace phantora::aten {
namespace {

using c10::CachingDeviceAllocator::TraceEntry;

// The allocator has taken memory from the device for the block that it gives out next.
thread_local bool growing = false;

// Called under the allocator's lock. Its figures are recorded whenever it has grown: a rank that ends without a
// farewell has told that much of its peaks.
void follow(const TraceEntry& entry) {
  auto* base = reinterpret_cast<const void*>(entry.addr_);
  switch (entry.action_) {
    case TraceEntry::SEGMENT_ALLOC:
    case TraceEntry::SEGMENT_MAP:
      growing = true;
      break;
    case TraceEntry::ALLOC:
      blocks::note(base, entry.size_);
      if (std::exchange(growing, false)) record_memory(entry.size_);
      break;
    case TraceEntry::FREE_COMPLETED:
      blocks::forget(base);
      break;
    default:
      break;
  }
}

// Other allocators (cudaMallocAsync) take each block from CUDA itself, and refuse to be followed.
void attach() {
  try {
    c10::cuda::CUDACachingAllocator::attachAllocatorTraceTracker(&follow);
  } catch (const c10::Error&) {
  }
}

}  // namespace

void follow_allocator() {
  static std::atomic<bool> following{false};
  static std::once_flag once;
  if (following.load(std::memory_order_relaxed) || !is_device_in_use()) return;
  std::call_once(once, attach);
  following.store(true, std::memory_order_relaxed);
}

}  // namespace phantora::aten
