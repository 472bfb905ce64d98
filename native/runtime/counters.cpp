#include "phantora/counters.h"

#include <string_view>

#include "phantora/memory.h"

namespace phantora::counters {

Counter records{"records"};
Counter launches{"launches"};
Counter signatures{"signatures"};
Counter requests{"requests"};
Counter local_answers{"local_answers"};
Counter spins{"spins"};
Counter corrections{"corrections"};
Counter bytes_sent{"bytes_sent"};
Counter unknown_reads{"unknown_reads"};

bool read(const char* name, uint64_t* value) {
  for (const Counter* counter : {&records, &launches, &signatures, &requests, &local_answers, &spins, &corrections,
                                 &bytes_sent, &unknown_reads}) {
    if (std::string_view(counter->name) == name) {
      *value = counter->value.load(std::memory_order_relaxed);
      return true;
    }
  }
  if (std::string_view(name) == "memory_peak_bytes") {
    *value = memory::peak_bytes();
    return true;
  }
  return false;
}

}  // namespace phantora::counters
