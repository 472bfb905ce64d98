// Level 3 calls on symmetric and triangular matrices, each described as the product that does as much work:
//   symm, hemm       C[m, n] = A[k, k] · B, k = m or n by side       product m, n, k
//   syrk, herk       half of C[n, n] = A[n, k] · Aᵀ                  product n, n, k/2
//   syr2k, her2k     half of C[n, n] = A · Bᵀ + B · Aᵀ               product n, n, k
//   trmm, trsm       a triangle of A[k, k] with B[m, n]              product m, n, k/2
#include "cublas/handle.h"

using phantora::StreamId;
using phantora::cublas::Handle;
using phantora::cublas::launch_product;
using phantora::cublas::Side;
using phantora::cublas::Status;
using phantora::shim::DataType;
using phantora::shim::Matrix;
using phantora::shim::Operation;
using phantora::shim::Product;

namespace {

int64_t half(int64_t k) { return (k + 1) / 2; }

Status multiply(const Handle* handle, const char* function, int64_t m, int64_t n, int64_t k, DataType type, void* c,
                int64_t ldc) {
  if (handle == nullptr) return Status::not_initialized;
  if (m < 0 || n < 0 || k < 0) return Status::invalid_value;
  if (m == 0 || n == 0) return Status::success;
  const auto kind = handle->tf32() && type == DataType::r32f ? Product::Kind::tf32 : Product::Kind::exact;
  const Product product{m, n, k, 1, Operation::none, Operation::none, type, type, kind};
  launch_product(*handle, function, product, {Matrix{c, m, n, ldc}.written(type)});
  return Status::success;
}

Status solve_through(const Handle* handle, const char* function, Side side, int64_t m, int64_t n, DataType type,
                     void* const* b, int64_t ldb, int64_t batch) {
  if (handle == nullptr) return Status::not_initialized;
  if (m < 0 || n < 0 || batch < 0) return Status::invalid_value;
  if (m == 0 || n == 0 || batch == 0) return Status::success;
  const int64_t k = half(side == Side::left ? m : n);
  const Product product{m, n, k, batch, Operation::none, Operation::none, type, type};
  const StreamId stream = launch_product(*handle, function, product, {});
  phantora::shim::overwrite_through(stream, b, batch, Matrix{nullptr, m, n, ldb}.written(type).bytes);
  return Status::success;
}

}  // namespace

extern "C" {

#define SYMMETRIC(name, type)                                                                                        \
  Status name(Handle* h, Side side, int, int m, int n, const void*, const void*, int, const void*, int, const void*, \
              void* c, int ldc) {                                                                                    \
    return multiply(h, #name, m, n, side == Side::left ? m : n, type, c, ldc);                                       \
  }
SYMMETRIC(cublasSsymm_v2, DataType::r32f)
SYMMETRIC(cublasDsymm_v2, DataType::r64f)
SYMMETRIC(cublasCsymm_v2, DataType::c32f)
SYMMETRIC(cublasZsymm_v2, DataType::c64f)
SYMMETRIC(cublasChemm_v2, DataType::c32f)
SYMMETRIC(cublasZhemm_v2, DataType::c64f)

#define RANK_K(name, type)                                                                                             \
  Status name(Handle* h, int, Operation, int n, int k, const void*, const void*, int, const void*, void* c, int ldc) { \
    return multiply(h, #name, n, n, half(k), type, c, ldc);                                                            \
  }
RANK_K(cublasSsyrk_v2, DataType::r32f)
RANK_K(cublasDsyrk_v2, DataType::r64f)
RANK_K(cublasCsyrk_v2, DataType::c32f)
RANK_K(cublasZsyrk_v2, DataType::c64f)
RANK_K(cublasCherk_v2, DataType::c32f)
RANK_K(cublasZherk_v2, DataType::c64f)

#define RANK_2K(name, type)                                                                                          \
  Status name(Handle* h, int, Operation, int n, int k, const void*, const void*, int, const void*, int, const void*, \
              void* c, int ldc) {                                                                                    \
    return multiply(h, #name, n, n, k, type, c, ldc);                                                                \
  }
RANK_2K(cublasSsyr2k_v2, DataType::r32f)
RANK_2K(cublasDsyr2k_v2, DataType::r64f)
RANK_2K(cublasCsyr2k_v2, DataType::c32f)
RANK_2K(cublasZsyr2k_v2, DataType::c64f)
RANK_2K(cublasCher2k_v2, DataType::c32f)
RANK_2K(cublasZher2k_v2, DataType::c64f)

#define TRIANGULAR(L, type)                                                                                         \
  Status cublas##L##trmm_v2(Handle* h, Side side, int, Operation, int, int m, int n, const void*, const void*, int, \
                            const void*, int, void* c, int ldc) {                                                   \
    return multiply(h, "cublas" #L "trmm_v2", m, n, half(side == Side::left ? m : n), type, c, ldc);                \
  }                                                                                                                 \
  Status cublas##L##trsm_v2(Handle* h, Side side, int, Operation, int, int m, int n, const void*, const void*, int, \
                            void* b, int ldb) {                                                                     \
    return multiply(h, "cublas" #L "trsm_v2", m, n, half(side == Side::left ? m : n), type, b, ldb);                \
  }                                                                                                                 \
  Status cublas##L##trsmBatched(Handle* h, Side side, int, Operation, int, int m, int n, const void*,               \
                                const void* const*, int, void* const* b, int ldb, int batch) {                      \
    return solve_through(h, "cublas" #L "trsmBatched", side, m, n, type, b, ldb, batch);                            \
  }
TRIANGULAR(S, DataType::r32f)
TRIANGULAR(D, DataType::r64f)
TRIANGULAR(C, DataType::c32f)
TRIANGULAR(Z, DataType::c64f)

}  // extern "C"
