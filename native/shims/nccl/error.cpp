#include "nccl/error.h"

#include <chrono>
#include <mutex>
#include <thread>

#include "phantora/config.h"
#include "phantora/recorder.h"

namespace phantora::nccl {
namespace {

constexpr auto simulators_turn = std::chrono::seconds(5);

// NCCL too keeps one text for the whole process. The returned pointer stays good on its thread until it asks again.
struct LastError {
  std::mutex mutex;
  std::string text;
};

LastError& last() {
  static auto& instance = *new LastError;
  return instance;
}

}  // namespace

void disagree(const std::string& what, const std::string& hint) {
  if (!config().null_sink) {
    recorder::flush();
    std::this_thread::sleep_for(simulators_turn);
  }
  fail("NCCL: " + what, hint);
}

void remember_error(const char* function, const char* what) {
  const std::lock_guard lock(last().mutex);
  last().text = std::string(function) + ": " + what;
}

const char* last_error() {
  thread_local std::string shown;
  const std::lock_guard lock(last().mutex);
  shown = last().text;
  return shown.c_str();
}

const char* describe(Result result) {
  switch (result) {
    case Result::success:
      return "no error";
    case Result::unhandled_cuda_error:
      return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case Result::system_error:
      return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case Result::internal_error:
      return "internal error - please report this issue to the NCCL developers";
    case Result::invalid_argument:
      return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case Result::invalid_usage:
      return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case Result::remote_error:
      return "remote process exited or there was a network error";
    case Result::in_progress:
      return "NCCL operation in progress";
    case Result::timeout:
      return "NCCL operation timed out";
  }
  return "unknown result code";
}

}  // namespace phantora::nccl
