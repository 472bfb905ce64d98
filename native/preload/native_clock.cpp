// Only what the program itself reads is virtual, by clock_gettime or std::chrono (watchdogs.cpp): libraries go on
// living in real time, and so do waits with a deadline, which then comes early at worst. Python has pytime instead.
#include "native_clock.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/auxv.h>

namespace {

template <typename Function>
Function find(void* where, const char* name) {
  return reinterpret_cast<Function>(dlsym(where, name));
}

int real_clock_gettime(clockid_t clock, timespec* time) {
  static auto real = find<int (*)(clockid_t, timespec*)>(RTLD_NEXT, "clock_gettime");
  return real(clock, time);
}

constexpr int64_t ns_per_s = 1'000'000'000;

// A loop that does nothing but read the clock waits for a time to come: pytime's rule.
constexpr int spinning_after = 10'000;
constexpr int64_t spin_step_ns = 1'000;

struct Runtime {
  int (*active)() = find<int (*)()>(RTLD_DEFAULT, "phantora_active");
  int64_t (*now_ns)() = find<int64_t (*)()>(RTLD_DEFAULT, "phantora_now_ns");
  void (*sleep_ns)(int64_t) = find<void (*)(int64_t)>(RTLD_DEFAULT, "phantora_sleep_ns");
};

__attribute__((tls_model("initial-exec"))) thread_local int64_t last_reading_ns = -1;
__attribute__((tls_model("initial-exec"))) thread_local int equal_readings = 0;

int64_t virtual_ns(const Runtime& runtime) {
  int64_t now_ns = runtime.now_ns();
  if (now_ns != last_reading_ns) {
    equal_readings = 0;
  } else if (++equal_readings >= spinning_after) {
    runtime.sleep_ns(spin_step_ns);
    now_ns += spin_step_ns;
  }
  return last_reading_ns = now_ns;
}

bool is_asked() {
  static const bool asked =
      getenv("PHANTORA_RUN_DIR") && getenv("PHANTORA_NATIVE_CLOCK") && !dlsym(RTLD_DEFAULT, "Py_IsInitialized");
  return asked;
}

bool is_in_program(const void* code) {
  Dl_info program;
  Dl_info place;
  return dladdr(reinterpret_cast<void*>(getauxval(AT_ENTRY)), &program) && dladdr(code, &place) &&
         program.dli_fbase == place.dli_fbase;
}

// The clock's reading at virtual time 0.
int64_t zero_ns(clockid_t clock) {
  timespec now;
  real_clock_gettime(clock, &now);
  return now.tv_sec * ns_per_s + now.tv_nsec;
}

}  // namespace

namespace phantora::preload {

bool reads_native_clock(clockid_t clock, const void* caller, int64_t* now_ns) {
  if (!is_asked() || !is_in_program(caller)) return false;
  if (clock != CLOCK_MONOTONIC && clock != CLOCK_MONOTONIC_RAW && clock != CLOCK_REALTIME) return false;
  static const Runtime runtime;
  if (!runtime.now_ns || !runtime.active()) return false;
  static const int64_t monotonic_zero_ns = zero_ns(CLOCK_MONOTONIC);
  static const int64_t wall_zero_ns = zero_ns(CLOCK_REALTIME);
  *now_ns = (clock == CLOCK_REALTIME ? wall_zero_ns : monotonic_zero_ns) + virtual_ns(runtime);
  return true;
}

}  // namespace phantora::preload

extern "C" __attribute__((visibility("default"))) int clock_gettime(clockid_t clock, timespec* time) {
  int64_t now_ns;
  if (!phantora::preload::reads_native_clock(clock, __builtin_return_address(0), &now_ns)) {
    return real_clock_gettime(clock, time);
  }
  *time = {.tv_sec = now_ns / ns_per_s, .tv_nsec = now_ns % ns_per_s};
  return 0;
}
