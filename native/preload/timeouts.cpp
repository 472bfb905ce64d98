// PyTorch measures the timeouts of torch.distributed in real time, and a job that is slow to emulate is not one that
// hangs. Two functions that libtorch exports, and calls through its own PLT, are taken over. A job that truly hangs is
// found by the simulator, in virtual time, or by the longer timeout here.
#include <stddef.h>
#include <stdint.h>

#include "hidden.h"

namespace {

// std::optional<std::chrono::milliseconds>, passed in two registers.
struct OptionalMilliseconds {
  int64_t value;
  bool given;
};

// c10::ArrayRef<std::string>, likewise.
struct Keys {
  const void* data;
  size_t length;
};

// Shorter waits are questions ("is it there yet?"), not watchdogs.
constexpr int64_t shortest_watchdog_ms = 1000;
constexpr int64_t patience_ms = 3600 * 1000;

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
  bool raised = timeout_ms >= shortest_watchdog_ms && timeout_ms < patience_ms;
  real(store, keys, raised ? patience_ms : timeout_ms);
}

}  // extern "C"
