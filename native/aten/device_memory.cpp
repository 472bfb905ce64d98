#include "device_memory.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "phantora/capi.h"

namespace phantora::aten {
namespace {

c10::DeviceAllocator* device_allocator() {
  auto* allocator = dynamic_cast<c10::DeviceAllocator*>(c10::GetAllocator(c10::DeviceType::CUDA));
  return allocator && allocator->initialized() ? allocator : nullptr;
}

// Before the script resets the allocator's own peaks they are kept here.
struct Kept {
  std::mutex mutex;
  std::vector<MemoryPeaks> of_device;
};

Kept& kept() {
  static Kept* kept = new Kept;
  return *kept;
}

void keep_peaks() {
  c10::DeviceAllocator* allocator = device_allocator();
  if (!allocator) return;
  int devices = c10::impl::VirtualGuardImpl(c10::DeviceType::CUDA).deviceCount();
  std::lock_guard guard(kept().mutex);
  kept().of_device.resize(static_cast<size_t>(devices));
  for (int i = 0; i < devices; ++i) {
    auto stats = allocator->getDeviceStats(static_cast<c10::DeviceIndex>(i));
    MemoryPeaks& peaks = kept().of_device[static_cast<size_t>(i)];
    peaks.allocated_bytes = std::max(peaks.allocated_bytes, static_cast<uint64_t>(stats.allocated_bytes[0].peak));
    peaks.reserved_bytes = std::max(peaks.reserved_bytes, static_cast<uint64_t>(stats.reserved_bytes[0].peak));
  }
}

}  // namespace

bool is_device_in_use() { return device_allocator() != nullptr; }

MemoryPeaks memory_peaks() {
  keep_peaks();
  std::lock_guard guard(kept().mutex);
  MemoryPeaks most;
  for (const MemoryPeaks& peaks : kept().of_device) {
    if (peaks.reserved_bytes >= most.reserved_bytes) most = peaks;
  }
  return most;
}

void record_memory(uint64_t growing_bytes) {
  c10::DeviceAllocator* allocator = device_allocator();
  if (!allocator) return;
  auto stats = allocator->getDeviceStats(c10::impl::VirtualGuardImpl(c10::DeviceType::CUDA).getDevice().index());
  phantora_memory(static_cast<uint64_t>(stats.allocated_bytes[0].current) + growing_bytes,
                  static_cast<uint64_t>(stats.reserved_bytes[0].current));
}

}  // namespace phantora::aten

// Called from Python before the script's reset_peak_memory_stats() takes effect.
extern "C" __attribute__((visibility("default"))) void phantora_aten_keep_memory_peaks() {
  phantora::aten::keep_peaks();
}
