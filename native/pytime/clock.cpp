#include "clock.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "phantora/capi.h"

namespace phantora::pytime {

namespace {

// Programs compare a monotonic clock with a zero of their own ("never yet"); so it does not begin there.
constexpr int64_t monotonic_at_start_ns = 1'000'000'000'000;

// A loop that does nothing but read the clock waits for a time to come. After so many equal readings by a thread, each
// further one moves its clock, which depends on nothing but the thread's own calls.
constexpr int spinning_after = 10'000;
constexpr int64_t spin_step_ns = 1'000;

struct Runtime {
  decltype(&phantora_active) active;
  decltype(&phantora_now_ns) now_ns;
  decltype(&phantora_sleep_ns) sleep_ns;
};

bool started = false;
std::atomic<bool> is_forked_child = false;
int64_t epoch = 0;
std::atomic<int64_t> slept_ns = 0;  // before the runtime came
Runtime runtime{};
std::atomic<bool> has_runtime = false;

thread_local int64_t last_reading_ns = -1;
thread_local int equal_readings = 0;

bool is_main_thread() { return syscall(SYS_gettid) == getpid(); }

template <typename Function>
bool find(const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
  return *function != nullptr;
}

// The runtime is loaded with the first CUDA library, for all to see. What was slept before is slept there again, on the
// main timeline.
bool attach() {
  if (has_runtime.load(std::memory_order_acquire)) return true;
  if (!is_main_thread()) return false;
  if (!find("phantora_active", &runtime.active) || !find("phantora_now_ns", &runtime.now_ns) ||
      !find("phantora_sleep_ns", &runtime.sleep_ns)) {
    return false;
  }
  runtime.sleep_ns(slept_ns.load());
  has_runtime.store(true, std::memory_order_release);
  return true;
}

int64_t moved_on_if_spinning(int64_t now_ns) {
  if (now_ns != last_reading_ns) {
    last_reading_ns = now_ns;
    equal_readings = 0;
    return now_ns;
  }
  if (++equal_readings < spinning_after) return now_ns;
  sleep_ns(spin_step_ns);
  last_reading_ns = now_ns + spin_step_ns;
  return last_reading_ns;
}

int64_t now_ns() { return moved_on_if_spinning(attach() ? runtime.now_ns() : slept_ns.load()); }

}  // namespace

void start_clock(int64_t epoch_ns) {
  epoch = epoch_ns;
  if (!started) {
    // With the runtime, a child's clock goes on from its parent's in real time; without, there is nothing to go on
    // from.
    pthread_atfork(nullptr, nullptr, [] { is_forked_child = true; });
  }
  started = true;
}

bool is_virtual() {
  if (!started || is_forked_child) return false;
  return !attach() || runtime.active();
}

int64_t monotonic_ns() { return monotonic_at_start_ns + now_ns(); }

int64_t wall_ns() { return epoch + now_ns(); }

void sleep_ns(int64_t ns) {
  if (attach()) {
    runtime.sleep_ns(ns);
  } else {
    slept_ns += ns;
  }
}

}  // namespace phantora::pytime
