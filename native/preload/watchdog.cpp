// PyTorch's NCCL watchdog measures its timeouts in real time, and a job that is slow to emulate is not one that hangs.
// This takes the place of the exported c10d::ProcessGroupNCCL::WorkNCCL::checkTimeout, which libtorch_cuda calls
// through its PLT; the answer is always "not timed out". A job that truly hangs is found by the simulator, in virtual
// time.
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

namespace {

// std::optional<std::chrono::milliseconds>, passed in two registers.
struct OptionalTimeout {
  int64_t milliseconds;
  bool given;
};

}  // namespace

extern "C" __attribute__((visibility("default"))) bool
_ZN4c10d16ProcessGroupNCCL8WorkNCCL12checkTimeoutESt8optionalINSt6chrono8durationIlSt5ratioILl1ELl1000EEEEE(
    void* work, OptionalTimeout timeout) {
  if (getenv("PHANTORA_RUN_DIR")) return false;
  using CheckTimeout = bool (*)(void*, OptionalTimeout);
  static auto real = reinterpret_cast<CheckTimeout>(
      dlsym(RTLD_NEXT,
            "_ZN4c10d16ProcessGroupNCCL8WorkNCCL12checkTimeoutESt8optionalINSt6chrono8durationIlSt5ratioILl1"
            "ELl1000EEEEE"));
  return real && real(work, timeout);
}
