// A cuDNN handle, and launches made through one.
#pragma once
#include <initializer_list>
#include <string>

#include "cudnn/status.h"
#include "library_launch.h"

namespace phantora::cudnn {

struct Handle {
  streams::Handle stream = nullptr;
};

// Ends the names of kernels that multiply float32 in TF32 (docs/protocol.md).
constexpr const char* tf32_suffix = "/tf32";

// One launch, named after the function. Op scopes describe it; outside of one its name is all that a cost engine sees.
inline Status launch_named(const Handle* handle, const char* function,
                           std::initializer_list<shim::Written> written = {}, bool tf32 = false) {
  if (handle == nullptr) return Status::not_initialized;
  const std::string kernel = std::string(function) + (tf32 ? tf32_suffix : "");
  Launch launch;
  launch.kernel = kernel;
  shim::launch_on(handle->stream, function, launch, written);
  return Status::success;
}

}  // namespace phantora::cudnn
