// What PyTorch's caching allocator holds on the emulated devices.
#pragma once
#include <cstdint>

namespace phantora::aten {

struct MemoryPeaks {
  uint64_t allocated_bytes = 0;
  uint64_t reserved_bytes = 0;
};

bool is_device_in_use();

// Peaks since the start of the process, of the device with the most, whatever the script resets.
MemoryPeaks memory_peaks();

// Allocated and reserved bytes of the current device at this moment, for the trace. `growing_bytes`: of the block that
// is being given out, which the allocator's figures do not show yet.
void record_memory(uint64_t growing_bytes = 0);

}  // namespace phantora::aten
