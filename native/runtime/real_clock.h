// The clocks of the machine itself.
#pragma once
#include <time.h>

#include <cstdint>

namespace phantora {

inline int64_t clock_ns(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return int64_t{1'000'000'000} * time.tv_sec + time.tv_nsec;
}

}  // namespace phantora
