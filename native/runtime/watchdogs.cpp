#include "phantora/watchdogs.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "phantora/capi.h"
#include "phantora/recorder.h"

namespace phantora::watchdogs {

namespace {

struct Watchdog {
  pthread_cond_t* sleeps_on = nullptr;  // null while it looks
  bool called = false;
  bool answers = false;  // it looks because it was called
};

class Watchdogs {
 public:
  void start() {
    std::lock_guard lock(mutex_);
    ++starting_;
  }

  void add(Watchdog& watchdog) {
    std::lock_guard lock(mutex_);
    --starting_;
    all_.push_back(&watchdog);
  }

  void remove(Watchdog& watchdog) {
    std::lock_guard lock(mutex_);
    std::erase(all_, &watchdog);
  }

  // True if it was called, and must look instead of sleeping.
  bool sleep(Watchdog& watchdog, pthread_cond_t* condition) {
    std::lock_guard lock(mutex_);
    if (watchdog.called) return answer(watchdog);
    watchdog.answers = false;
    watchdog.sleeps_on = condition;
    return false;
  }

  // True if it was called.
  bool wake_up(Watchdog& watchdog) {
    std::lock_guard lock(mutex_);
    watchdog.sleeps_on = nullptr;
    return watchdog.called && answer(watchdog);
  }

  // The caller stays runnable: watchdogs don't count for the simulator, and if the caller slept, nothing in this rank
  // would seem to move.
  void call() {
    while (!call_if_all_have_started()) sched_yield();
    while (!all_have_looked()) sched_yield();
  }

 private:
  static bool answer(Watchdog& watchdog) {
    watchdog.called = false;
    watchdog.answers = true;
    return true;
  }

  bool call_if_all_have_started() {
    std::lock_guard lock(mutex_);
    if (starting_ > 0) return false;
    for (Watchdog* watchdog : all_) watchdog->called = true;
    return true;
  }

  // What is signalled between sleep() and the wait itself is lost, so this signals each time.
  bool all_have_looked() {
    std::lock_guard lock(mutex_);
    for (Watchdog* watchdog : all_) {
      if (watchdog->called && watchdog->sleeps_on) pthread_cond_broadcast(watchdog->sleeps_on);
    }
    return std::none_of(all_.begin(), all_.end(),
                        [](const Watchdog* watchdog) { return watchdog->called || watchdog->answers; });
  }

  std::mutex mutex_;
  std::vector<Watchdog*> all_;
  int starting_ = 0;  // threads that are being created
};

Watchdogs& watchdogs() {
  static Watchdogs* instance = new Watchdogs;  // never destroyed: the threads use it to the end
  return *instance;
}

thread_local Watchdog this_watchdog;

}  // namespace

void look() {
  if (!recorder::active() || !recorder::is_main()) return;
  static uint64_t waits_noticed = 0;  // lane 0's threads take turns
  uint64_t waits = recorder::waits();
  if (waits == waits_noticed) return;
  waits_noticed = waits;
  watchdogs().call();
}

}  // namespace phantora::watchdogs

using phantora::watchdogs::this_watchdog;
using phantora::watchdogs::watchdogs;

extern "C" {

void phantora_watchdog_starts(void) { watchdogs().start(); }
void phantora_watchdog_begins(void) { watchdogs().add(this_watchdog); }
void phantora_watchdog_ends(void) { watchdogs().remove(this_watchdog); }
int phantora_watchdog_sleeps(pthread_cond_t* condition) { return watchdogs().sleep(this_watchdog, condition); }
int phantora_watchdog_wakes(void) { return watchdogs().wake_up(this_watchdog); }

}  // extern "C"
