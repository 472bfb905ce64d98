// A cuSPARSE handle and its launches.
#pragma once
#include <cstdint>

#include "data_type.h"
#include "library_launch.h"

namespace phantora::cusparse {

enum class Status : int { success = 0, not_initialized = 1, invalid_value = 3, not_supported = 10 };

struct Handle {
  streams::Handle stream = nullptr;
  int pointer_mode = 0;
};

inline Status run(const Handle* handle, const char* function, std::initializer_list<shim::Written> written) {
  if (handle == nullptr) return Status::not_initialized;
  Launch launch;
  launch.kernel = function;
  shim::launch_on(handle->stream, function, launch, written);
  return Status::success;
}

// External buffers: none are needed for launches that compute nothing, and NVIDIA publishes no sizes.
template <typename Size>
Status no_buffer(Size* bytes) {
  if (bytes == nullptr) return Status::invalid_value;
  *bytes = 0;
  return Status::success;
}

template <typename T>
Status create(T** out, T value = {}) {
  if (out == nullptr) return Status::invalid_value;
  *out = new T(value);
  return Status::success;
}

template <typename T>
Status destroy(const T* object) {
  delete object;
  return Status::success;
}

}  // namespace phantora::cusparse
