// What a cuBLAS handle holds, and the launches made through one.
#pragma once
#include <cstdint>

#include "data_type.h"
#include "library_launch.h"

namespace phantora::cublas {

enum class Status : int {
  success = 0, not_initialized = 1, alloc_failed = 3, invalid_value = 7, arch_mismatch = 8, mapping_error = 11,
  execution_failed = 13, internal_error = 14, not_supported = 15, license_error = 16,
};

enum class Math : int { standard = 0, tensor_op = 1, pedantic = 2, tf32 = 3 };  // bit 4: no reduced-precision reductions
enum class PointerMode : int { host = 0, device = 1 };
enum class Operation : int { none = 0, transpose = 1, conjugate_transpose = 2 };
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

// A column-major matrix in device memory, or `batch` of them `stride` elements apart.
struct Matrix {
  void* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t ld = 0;
  int64_t batch = 1;
  int64_t stride = 0;

  int64_t elements() const {
    if (rows <= 0 || cols <= 0 || batch <= 0) return 0;
    return ld * (cols - 1) + rows + stride * (batch - 1);
  }
  shim::Written written(shim::DataType type) const {
    return {data, static_cast<size_t>(shim::bytes_of(type, elements()))};
  }
};

// Dimensions of a product, or of the product that costs what a call costs.
struct Product {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  int64_t batch = 1;
  Operation transa = Operation::none;
  Operation transb = Operation::none;
  shim::DataType type_a = shim::DataType::r32f;
  shim::DataType type_d = shim::DataType::r32f;
};

// A GEMM-like call. The kernel is named after the function; "/tf32" is appended where float32 inputs are multiplied in
// TF32, which the element types do not tell.
StreamId launch_product(const Handle& handle, const char* function, const Product& product, bool tf32,
                        std::initializer_list<shim::Written> written);

// Any other call: known by its name alone.
StreamId launch_named(const Handle& handle, const char* function, std::initializer_list<shim::Written> written = {});

}  // namespace phantora::cublas
