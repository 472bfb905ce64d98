// Figures about this rank that tests and the Python side may read by name.
#pragma once
#include <atomic>
#include <cstdint>

#include "phantora/export.h"

namespace phantora {
namespace counters PHANTORA_EXPORT {

struct Counter {
  const char* name;
  std::atomic<uint64_t> value{0};
  explicit Counter(const char* counter_name) : name(counter_name) {}
  void add(uint64_t n = 1) { value.fetch_add(n, std::memory_order_relaxed); }
};

extern Counter records;        // records of every kind
extern Counter launches;       // KERNEL records
extern Counter signatures;     // distinct kernel definitions
extern Counter requests;       // round trips to the simulator
extern Counter local_answers;  // queries answered without one
extern Counter spins;          // queries that became waits
extern Counter corrections;    // speculated answers that the simulator corrected
extern Counter bytes_sent;
extern Counter unknown_reads;  // host reads of values that nothing computed

// By name; false if there is none such. "memory_peak_bytes" is the device memory peak over all devices.
bool read(const char* name, uint64_t* value);

}  // namespace counters PHANTORA_EXPORT
}  // namespace phantora
