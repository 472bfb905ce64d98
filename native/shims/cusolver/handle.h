// A cuSOLVER handle, and what its calls have in common.
//
// Each factorisation or solve is one launch, described by the product that does as many operations
// (Product::Kind::work). Work space is an estimate, 64 columns (a usual panel) of the matrix: NVIDIA publishes no
// sizes.
#pragma once
#include <algorithm>
#include <cstdint>

#include "product.h"

namespace phantora::cusolver {

enum class Status : int { success = 0, not_initialized = 1, invalid_value = 3, not_supported = 9 };

struct Handle {
  streams::Handle stream = nullptr;
};

inline Status run(const Handle* handle, const char* function, shim::DataType type, int64_t m, int64_t n, int64_t k,
                  std::initializer_list<shim::Written> written, int64_t batch = 1) {
  if (handle == nullptr) return Status::not_initialized;
  if (m < 0 || n < 0 || batch < 0) return Status::invalid_value;
  const shim::Product work{.m = std::max<int64_t>(m, 1),
                           .n = std::max<int64_t>(n, 1),
                           .k = std::max<int64_t>(k, 1),
                           .batch = std::max<int64_t>(batch, 1),
                           .type_a = type,
                           .type_d = type,
                           .kind = shim::Product::Kind::work};
  shim::launch_product(handle->stream, function, work, written);
  return Status::success;
}

inline int64_t panel_elements(int64_t m, int64_t n) { return 64 * std::max<int64_t>({m, n, 1}); }

inline Status panel(int64_t m, int64_t n, int* elements) {
  if (elements == nullptr) return Status::invalid_value;
  *elements = static_cast<int>(panel_elements(m, n));
  return Status::success;
}

inline Status panel(int64_t m, int64_t n, shim::DataType type, size_t* device_bytes, size_t* host_bytes) {
  if (device_bytes == nullptr || host_bytes == nullptr) return Status::invalid_value;
  *device_bytes = shim::bytes_of(type, panel_elements(m, n));
  *host_bytes = 0;
  return Status::success;
}

inline shim::Written matrix(void* data, int64_t rows, int64_t cols, int64_t ld, shim::DataType type, int64_t batch = 1,
                            int64_t stride = 0) {
  return shim::Matrix{data, rows, cols, ld, batch, stride}.written(type);
}
inline shim::Written vector(void* data, int64_t elements, shim::DataType type) {
  return {data, static_cast<size_t>(shim::bytes_of(type, std::max<int64_t>(elements, 0)))};
}
inline shim::Written info(int* data, int64_t batch = 1) { return vector(data, batch, shim::DataType::r32i); }

// The real type of a complex one: of singular values and symmetric eigenvalues.
constexpr shim::DataType real_of(shim::DataType type) {
  if (type == shim::DataType::c32f) return shim::DataType::r32f;
  return type == shim::DataType::c64f ? shim::DataType::r64f : type;
}

}  // namespace phantora::cusolver
