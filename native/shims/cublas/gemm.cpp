// Matrix products: D[m, n] = op(A)[m, k] · op(B)[k, n], single, batched by pointers, batched by stride.
#include "cublas/handle.h"

using phantora::StreamId;
using phantora::cublas::Handle;
using phantora::cublas::launch_product;
using phantora::cublas::Status;
using phantora::shim::DataType;
using phantora::shim::Matrix;
using phantora::shim::Operation;
using phantora::shim::Product;

namespace {

enum class Compute : int { f32_fast_16f = 74, f32_fast_16bf = 75, f32_fast_tf32 = 77 };

// Single-precision products take TF32 when the call or the handle's math mode allows it.
bool uses_tf32(const Handle& handle, DataType type_a, int compute) {
  if (type_a != DataType::r32f && type_a != DataType::c32f) return false;
  return compute == static_cast<int>(Compute::f32_fast_tf32) || handle.tf32();
}
constexpr int by_type = -1;  // functions without a compute type

Status gemm(const Handle* handle, const char* function, Product product, int compute, void* d, int64_t ldd,
            int64_t stride = 0) {
  if (handle == nullptr) return Status::not_initialized;
  if (product.m < 0 || product.n < 0 || product.k < 0 || product.batch < 0) return Status::invalid_value;
  if (product.m == 0 || product.n == 0 || product.batch == 0) return Status::success;
  const Matrix out{d, product.m, product.n, ldd, product.batch, stride};
  if (uses_tf32(*handle, product.type_a, compute)) product.kind = Product::Kind::tf32;
  launch_product(*handle, function, product, {out.written(product.type_d)});
  return Status::success;
}

Status gemm_through(const Handle* handle, const char* function, Product product, int compute, void* const* d,
                    int64_t ldd) {
  if (handle == nullptr) return Status::not_initialized;
  if (product.m < 0 || product.n < 0 || product.k < 0 || product.batch < 0) return Status::invalid_value;
  if (product.m == 0 || product.n == 0 || product.batch == 0) return Status::success;
  if (uses_tf32(*handle, product.type_a, compute)) product.kind = Product::Kind::tf32;
  const StreamId stream = launch_product(*handle, function, product, {});
  const Matrix each{nullptr, product.m, product.n, ldd};
  phantora::shim::overwrite_through(stream, d, product.batch, each.written(product.type_d).bytes);
  return Status::success;
}

}  // namespace

extern "C" {

#define TYPED_GEMMS(letter, type, suffix)                                                                             \
  Status cublas##letter##gemm##suffix(Handle* handle, Operation ta, Operation tb, int m, int n, int k, const void*,   \
                                      const void*, int, const void*, int, const void*, void* c, int ldc) {            \
    return gemm(handle, "cublas" #letter "gemm" #suffix, {m, n, k, 1, ta, tb, type, type}, by_type, c, ldc);          \
  }                                                                                                                   \
  Status cublas##letter##gemmBatched(Handle* handle, Operation ta, Operation tb, int m, int n, int k, const void*,    \
                                     const void* const*, int, const void* const*, int, const void*, void* const* c,   \
                                     int ldc, int batch) {                                                            \
    return gemm_through(handle, "cublas" #letter "gemmBatched", {m, n, k, batch, ta, tb, type, type}, by_type, c,     \
                        ldc);                                                                                         \
  }                                                                                                                   \
  Status cublas##letter##gemmStridedBatched(Handle* handle, Operation ta, Operation tb, int m, int n, int k,          \
                                            const void*, const void*, int, long long, const void*, int, long long,    \
                                            const void*, void* c, int ldc, long long stride, int batch) {             \
    return gemm(handle, "cublas" #letter "gemmStridedBatched", {m, n, k, batch, ta, tb, type, type}, by_type, c, ldc, \
                stride);                                                                                              \
  }

TYPED_GEMMS(S, DataType::r32f, _v2)
TYPED_GEMMS(D, DataType::r64f, _v2)
TYPED_GEMMS(C, DataType::c32f, _v2)
TYPED_GEMMS(Z, DataType::c64f, _v2)
TYPED_GEMMS(H, DataType::r16f, )

Status cublasSgemmEx(Handle* handle, Operation ta, Operation tb, int m, int n, int k, const void*, const void*,
                     DataType type_a, int, const void*, DataType, int, const void*, void* c, DataType type_c, int ldc) {
  return gemm(handle, "cublasSgemmEx", {m, n, k, 1, ta, tb, type_a, type_c}, by_type, c, ldc);
}

Status cublasGemmEx(Handle* handle, Operation ta, Operation tb, int m, int n, int k, const void*, const void*,
                    DataType type_a, int, const void*, DataType, int, const void*, void* c, DataType type_c, int ldc,
                    int compute, int) {
  return gemm(handle, "cublasGemmEx", {m, n, k, 1, ta, tb, type_a, type_c}, compute, c, ldc);
}
Status cublasGemmEx_64(Handle* handle, Operation ta, Operation tb, int64_t m, int64_t n, int64_t k, const void*,
                       const void*, DataType type_a, int64_t, const void*, DataType, int64_t, const void*, void* c,
                       DataType type_c, int64_t ldc, int compute, int) {
  return gemm(handle, "cublasGemmEx", {m, n, k, 1, ta, tb, type_a, type_c}, compute, c, ldc);
}

Status cublasGemmBatchedEx(Handle* handle, Operation ta, Operation tb, int m, int n, int k, const void*,
                           const void* const*, DataType type_a, int, const void* const*, DataType, int, const void*,
                           void* const* c, DataType type_c, int ldc, int batch, int compute, int) {
  return gemm_through(handle, "cublasGemmBatchedEx", {m, n, k, batch, ta, tb, type_a, type_c}, compute, c, ldc);
}
Status cublasGemmBatchedEx_64(Handle* handle, Operation ta, Operation tb, int64_t m, int64_t n, int64_t k, const void*,
                              const void* const*, DataType type_a, int64_t, const void* const*, DataType, int64_t,
                              const void*, void* const* c, DataType type_c, int64_t ldc, int64_t batch, int compute,
                              int) {
  return gemm_through(handle, "cublasGemmBatchedEx", {m, n, k, batch, ta, tb, type_a, type_c}, compute, c, ldc);
}

Status cublasGemmStridedBatchedEx(Handle* handle, Operation ta, Operation tb, int m, int n, int k, const void*,
                                  const void*, DataType type_a, int, long long, const void*, DataType, int, long long,
                                  const void*, void* c, DataType type_c, int ldc, long long stride, int batch,
                                  int compute, int) {
  return gemm(handle, "cublasGemmStridedBatchedEx", {m, n, k, batch, ta, tb, type_a, type_c}, compute, c, ldc, stride);
}
Status cublasGemmStridedBatchedEx_64(Handle* handle, Operation ta, Operation tb, int64_t m, int64_t n, int64_t k,
                                     const void*, const void*, DataType type_a, int64_t, long long, const void*,
                                     DataType, int64_t, long long, const void*, void* c, DataType type_c, int64_t ldc,
                                     long long stride, int64_t batch, int compute, int) {
  return gemm(handle, "cublasGemmStridedBatchedEx", {m, n, k, batch, ta, tb, type_a, type_c}, compute, c, ldc, stride);
}

}  // extern "C"
