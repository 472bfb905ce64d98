// PyTorch measures the timeouts of torch.distributed in real time, and a job that is slow to emulate is not one that
// hangs. Two functions that libtorch exports, and calls through its own PLT, are taken over. A job that truly hangs is
// found by the simulator, in virtual time, or by the longer timeout here.
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "hidden.h"

namespace {

// std::optional<std::chrono::milliseconds>, passed in two registers.
struct OptionalMilliseconds {
  int64_t value;
  bool given;
};

// What comes first in a std::string.
struct String {
  const char* text;
  size_t length;
  char rest[16];
};

// c10::ArrayRef<std::string>, likewise.
struct Keys {
  const String* data;
  size_t length;
};

// Shorter waits are questions ("is it there yet?"), not watchdogs.
constexpr int64_t shortest_watchdog_ms = 1000;
constexpr int64_t patience_ms = 3600 * 1000;

// Tells the simulator what this thread waits for, for its diagnosis of a job that hangs. Null: it has come.
void wait_outside(const Keys* keys) {
  static auto tell = reinterpret_cast<void (*)(const char*)>(dlsym(RTLD_DEFAULT, "phantora_outside"));
  char what[256] = "";
  if (keys && keys->length > 0) {
    const String& first = keys->data[0];
    snprintf(what, sizeof what, "key '%.*s' of a TCPStore%s", first.length < 200 ? static_cast<int>(first.length) : 200,
             first.text, keys->length > 1 ? " and others" : "");
  }
  if (tell) tell(what);
}

}  // namespace

extern "C" {

// bool c10d::ProcessGroupNCCL::WorkNCCL::checkTimeout(std::optional<std::chrono::milliseconds>): has it timed out?
// Never.
__attribute__((visibility("default"))) bool
_ZN4c10d16ProcessGroupNCCL8WorkNCCL12checkTimeoutESt8optionalINSt6chrono8durationIlSt5ratioILl1ELl1000EEEEE(
    void*, OptionalMilliseconds) {
  return false;
}

// void c10d::TCPStore::doWait(c10::ArrayRef<std::string> keys, std::chrono::milliseconds timeout)
__attribute__((visibility("default"))) void
_ZN4c10d8TCPStore6doWaitEN3c108ArrayRefINSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEEENSt6chrono8durationIlSt5ratioILl1ELl1000EEEE(
    void* store, Keys keys, int64_t timeout_ms) {
  using Wait = void (*)(void*, Keys, int64_t);
  static Wait real = reinterpret_cast<Wait>(phantora::preload::hidden(
      "libtorch_cpu.so",
      "_ZN4c10d8TCPStore6doWaitEN3c108ArrayRefINSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEEENSt6chrono8dur"
      "ationIlSt5ratioILl1ELl1000EEEE"));
  if (timeout_ms < shortest_watchdog_ms) return real(store, keys, timeout_ms);
  wait_outside(&keys);
  real(store, keys, timeout_ms < patience_ms ? patience_ms : timeout_ms);
  wait_outside(nullptr);  // after an exception, the rank's next record says as much
}

}  // extern "C"
