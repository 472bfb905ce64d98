// A cuDNN handle, and launches made through one.
#pragma once
#include <initializer_list>

#include "cudnn/status.h"
#include "library_launch.h"

namespace phantora::cudnn {

struct Handle {
  streams::Handle stream = nullptr;
};

// One launch, named after the function. Op scopes describe it; outside of one its name is all that a cost engine sees.
inline Status launch_named(const Handle* handle, const char* function,
                           std::initializer_list<shim::Written> written = {}) {
  if (handle == nullptr) return Status::not_initialized;
  Launch launch;
  launch.kernel = function;
  shim::launch_on(handle->stream, function, launch, written);
  return Status::success;
}

}  // namespace phantora::cudnn
