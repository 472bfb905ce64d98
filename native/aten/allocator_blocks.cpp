#include "allocator_blocks.h"

#include <c10/cuda/CUDACachingAllocator.h>

#include <atomic>
#include <mutex>

#include "device_memory.h"
#include "phantora/blocks.h"

namespace phantora::aten {
namespace {

using c10::CachingDeviceAllocator::TraceEntry;

void follow(const TraceEntry& entry) {
  auto* base = reinterpret_cast<const void*>(entry.addr_);
  if (entry.action_ == TraceEntry::ALLOC) blocks::note(base, entry.size_);
  if (entry.action_ == TraceEntry::FREE_COMPLETED) blocks::forget(base);
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
