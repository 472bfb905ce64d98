// Memory that callers take from NCCL or register with it. Registration only makes a real NCCL faster: handles are given
// out and checked, nothing else.
#include <mutex>
#include <string>
#include <unordered_set>

#include "nccl/buffer.h"
#include "nccl/communicator.h"
#include "nccl/error.h"
#include "nccl/types.h"
#include "phantora/device.h"
#include "phantora/export.h"
#include "phantora/memory.h"

namespace phantora::nccl {
namespace {

class Registrations {
 public:
  void* add() {
    const std::lock_guard lock(mutex_);
    return *live_.insert(new char).first;
  }

  void remove(void* handle) {
    const std::lock_guard lock(mutex_);
    if (live_.erase(handle) == 0) reject("handle is no registration");
    delete static_cast<char*>(handle);
  }

 private:
  std::mutex mutex_;
  std::unordered_set<void*> live_;
};

Registrations& registrations() {
  static auto& instance = *new Registrations;
  return instance;
}

Result add_registration(const char* function, Handle comm, const void* buffer, size_t bytes, void** handle) {
  return guarded(function, [&] {
    if (handle == nullptr) reject("handle is NULL");
    check_buffer(*find_ready(comm), buffer, bytes, "buff");
    *handle = registrations().add();
    return Result::success;
  });
}

Result remove_registration(const char* function, Handle comm, void* handle) {
  return guarded(function, [&] {
    find(comm);
    if (handle != nullptr) registrations().remove(handle);
    return Result::success;
  });
}

}  // namespace
}  // namespace phantora::nccl

using namespace phantora;
using namespace phantora::nccl;

extern "C" {

PHANTORA_EXPORT Result ncclMemAlloc(void** pointer, size_t bytes) {
  return guarded(__func__, [&] {
    if (pointer == nullptr || bytes == 0) reject("ptr is NULL, or the size 0");
    *pointer = memory::allocate(device::current(), bytes);
    if (*pointer == nullptr) throw Error(Result::unhandled_cuda_error, "Cuda failure 'out of memory'");
    return Result::success;
  });
}

PHANTORA_EXPORT Result ncclMemFree(void* pointer) {
  return guarded(__func__, [&] {
    if (pointer == nullptr) return Result::success;
    const memory::Region region = memory::find(pointer);
    if (region.kind == memory::Kind::device) device::synchronize(region.device);  // work on it may be under way
    if (!memory::release(pointer)) reject("ptr is not from ncclMemAlloc");
    return Result::success;
  });
}

PHANTORA_EXPORT Result ncclCommRegister(Handle comm, void* buffer, size_t bytes, void** handle) {
  return add_registration(__func__, comm, buffer, bytes, handle);
}

PHANTORA_EXPORT Result ncclCommDeregister(Handle comm, void* handle) {
  return remove_registration(__func__, comm, handle);
}

PHANTORA_EXPORT Result ncclCommWindowRegister(Handle comm, void* buffer, size_t bytes, void** window, int /*flags*/) {
  return add_registration(__func__, comm, buffer, bytes, window);
}

PHANTORA_EXPORT Result ncclCommWindowDeregister(Handle comm, void* window) {
  return remove_registration(__func__, comm, window);
}

}  // extern "C"
