// PyTorch's NCCL watchdogs sleep with a time limit. So that the runtime can have them look at once (watchdogs.h there),
// their threads, their sleep, and the clocks by which they judge whether the time is up are taken over. libtorch_cuda
// exports the functions of the class and calls them through its own PLT. Threads that are no watchdogs notice nothing.
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <time.h>

#include "hidden.h"
#include "native_clock.h"

namespace {

using phantora::preload::hidden;
using phantora::preload::reads_native_clock;

// Functions of the runtime, which is there before any watchdog.
struct Runtime {
  template <typename Function>
  static Function find(const char* name) {
    return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
  }

  void (*starts)() = find<void (*)()>("phantora_watchdog_starts");
  void (*begins)() = find<void (*)()>("phantora_watchdog_begins");
  void (*ends)() = find<void (*)()>("phantora_watchdog_ends");
  int (*sleeps)(pthread_cond_t*) = find<int (*)(pthread_cond_t*)>("phantora_watchdog_sleeps");
  int (*wakes)() = find<int (*)()>("phantora_watchdog_wakes");
};

const Runtime& runtime() {
  static const Runtime functions;
  return functions;
}

#define THREAD_LOCAL __attribute__((tls_model("initial-exec"))) thread_local

THREAD_LOCAL bool is_watchdog = false;
// By how much the next reading of a clock is ahead of it.
THREAD_LOCAL int64_t steady_ahead_ns = 0;
THREAD_LOCAL int64_t system_ahead_ns = 0;

constexpr int64_t ns_per_s = 1'000'000'000;
// Between its own reading of the two clocks and ours of one, a watchdog may have been kept waiting.
constexpr int64_t slack_ns = 1'000'000;

int64_t in_ns(const timespec& time) { return time.tv_sec * ns_per_s + time.tv_nsec; }

int64_t read_ns(clockid_t clock, int64_t& ahead_ns, const void* caller) {
  int64_t native_ns;
  if (reads_native_clock(clock, caller, &native_ns)) return native_ns;
  timespec now;
  clock_gettime(clock, &now);
  int64_t shown_ns = in_ns(now) + ahead_ns;
  ahead_ns = 0;
  return shown_ns;
}

// What the sleeper is told whose time is not up yet. It reads the clocks once to see for itself.
int time_is_up(clockid_t clock, const timespec* deadline) {
  timespec now;
  clock_gettime(clock, &now);
  int64_t left_ns = in_ns(*deadline) - in_ns(now);
  if (left_ns > 0) steady_ahead_ns = system_ahead_ns = left_ns + slack_ns;
  return ETIMEDOUT;
}

template <typename Wait>
int sleep_until(clockid_t clock, pthread_cond_t* condition, const timespec* deadline, Wait wait) {
  if (!is_watchdog) return wait();
  if (runtime().sleeps(condition)) return time_is_up(clock, deadline);
  int result = wait();
  return runtime().wakes() ? time_is_up(clock, deadline) : result;
}

template <typename Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

using Method = void (*)(void*);

}  // namespace

extern "C" {

// void c10d::ProcessGroupNCCL::Watchdog::start(): creates the thread
__attribute__((visibility("default"))) void _ZN4c10d16ProcessGroupNCCL8Watchdog5startEv(void* watchdog) {
  static Method real =
      reinterpret_cast<Method>(hidden("libtorch_cuda.so", "_ZN4c10d16ProcessGroupNCCL8Watchdog5startEv"));
  if (runtime().starts) runtime().starts();
  real(watchdog);
}

// void c10d::ProcessGroupNCCL::Watchdog::run(): what the thread does
__attribute__((visibility("default"))) void _ZN4c10d16ProcessGroupNCCL8Watchdog3runEv(void* watchdog) {
  static Method real =
      reinterpret_cast<Method>(hidden("libtorch_cuda.so", "_ZN4c10d16ProcessGroupNCCL8Watchdog3runEv"));
  if (!runtime().begins) return real(watchdog);
  runtime().begins();
  is_watchdog = true;
  real(watchdog);
  is_watchdog = false;
  runtime().ends();
}

__attribute__((visibility("default"))) int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                                                                  const timespec* deadline) {
  using Function = int (*)(pthread_cond_t*, pthread_mutex_t*, const timespec*);
  static Function real = next<Function>("pthread_cond_timedwait");
  return sleep_until(CLOCK_REALTIME, condition, deadline, [&] { return real(condition, mutex, deadline); });
}

// Called instead where libtorch was built with a newer libc.
__attribute__((visibility("default"))) int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                                                                  clockid_t clock, const timespec* deadline) {
  using Function = int (*)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*);
  static Function real = next<Function>("pthread_cond_clockwait");
  return sleep_until(clock, condition, deadline, [&] { return real(condition, mutex, clock, deadline); });
}

// std::chrono::steady_clock::now() and system_clock::now(): a number of ns
__attribute__((visibility("default"))) int64_t _ZNSt6chrono3_V212steady_clock3nowEv() {
  return read_ns(CLOCK_MONOTONIC, steady_ahead_ns, __builtin_return_address(0));
}

__attribute__((visibility("default"))) int64_t _ZNSt6chrono3_V212system_clock3nowEv() {
  return read_ns(CLOCK_REALTIME, system_ahead_ns, __builtin_return_address(0));
}

}  // extern "C"
