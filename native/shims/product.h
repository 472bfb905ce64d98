// Matrix products as launches, and calls that cost about as much as a product.
#pragma once
#include <cstdint>
#include <string>

#include "data_type.h"
#include "library_launch.h"

namespace phantora::shim {

enum class Operation : int { none = 0, transpose = 1, conjugate_transpose = 2 };  // cublasOperation_t

// D[m, n] = op(A)[m, k] · op(B)[k, n], `batch` times.
struct Product {
  enum class Kind {
    exact,
    tf32,  // float32 inputs multiplied in TF32, which the element types do not tell
    work,  // no product: a factorisation or solve that does as many operations as this product would
  };

  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  int64_t batch = 1;
  Operation transa = Operation::none;
  Operation transb = Operation::none;
  DataType type_a = DataType::r32f;
  DataType type_d = DataType::r32f;
  Kind kind = Kind::exact;
};

// The kernel is named after the function, with "/tf32" or "/work" appended for those kinds (docs/protocol.md).
inline StreamId launch_product(streams::Handle stream, const char* function, const Product& product,
                               std::initializer_list<Written> written) {
  std::string kernel = function;
  if (product.kind == Product::Kind::tf32) kernel += "/tf32";
  if (product.kind == Product::Kind::work) kernel += "/work";
  Launch launch;
  launch.kernel = kernel;
  launch.gemm[0] = product.m;
  launch.gemm[1] = product.n;
  launch.gemm[2] = product.k;
  launch.gemm[3] = product.batch;
  launch.gemm_types[0] = type_info(product.type_a).name;
  launch.gemm_types[1] = type_info(product.type_d).name;
  launch.gemm_trans[0] = product.transa != Operation::none;
  launch.gemm_trans[1] = product.transb != Operation::none;
  return launch_on(stream, function, launch, written);
}

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
  Written written(DataType type) const { return {data, static_cast<size_t>(bytes_of(type, elements()))}; }
};

}  // namespace phantora::shim
