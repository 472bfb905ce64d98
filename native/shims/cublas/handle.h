// What a cuBLAS handle holds, and the launches made through one.
#pragma once
#include <cstdint>

#include "product.h"

namespace phantora::cublas {

enum class Status : int {
  success = 0,
  not_initialized = 1,
  alloc_failed = 3,
  invalid_value = 7,
  arch_mismatch = 8,
  mapping_error = 11,
  execution_failed = 13,
  internal_error = 14,
  not_supported = 15,
  license_error = 16,
};

enum class Math : int {
  standard = 0,
  tensor_op = 1,
  pedantic = 2,
  tf32 = 3
};  // bit 4: no reduced-precision reductions
enum class PointerMode : int { host = 0, device = 1 };
enum class Side : int { left = 0, right = 1 };

struct Handle {
  streams::Handle stream = nullptr;
  PointerMode pointer_mode = PointerMode::host;
  int math = 0;  // cublasMath_t: a Math and flags
  int atomics = 0;
  int sm_count_target = 0;
  void* workspace = nullptr;
  size_t workspace_bytes = 0;

  bool tf32() const { return (math & 0xf) == static_cast<int>(Math::tf32); }
};

// A product on the handle's stream.
inline StreamId launch_product(const Handle& handle, const char* function, const shim::Product& product,
                               std::initializer_list<shim::Written> written) {
  return shim::launch_product(handle.stream, function, product, written);
}

// Any other call: known by its name alone.
inline StreamId launch_named(const Handle& handle, const char* function, std::initializer_list<shim::Written> written) {
  Launch launch;
  launch.kernel = function;
  return shim::launch_on(handle.stream, function, launch, written);
}

}  // namespace phantora::cublas
