// Level 1 and 2: vectors, and matrices times vectors. Known to the cost engines by name, or as a product with one
// column.
#include "cublas/handle.h"

using phantora::StreamId;
using phantora::cublas::Handle;
using phantora::cublas::launch_named;
using phantora::cublas::launch_product;
using phantora::cublas::PointerMode;
using phantora::cublas::Status;
using phantora::shim::DataType;
using phantora::shim::Matrix;
using phantora::shim::Operation;
using phantora::shim::Product;
using phantora::shim::Written;

namespace {

Written vector(void* x, int64_t n, int64_t increment, DataType type) {
  if (n <= 0) return {};
  const int64_t step = increment < 0 ? -increment : increment;
  return {x, static_cast<size_t>(phantora::shim::bytes_of(type, (n - 1) * step + 1))};
}

Status update(const Handle* handle, const char* function, std::initializer_list<Written> written) {
  if (handle == nullptr) return Status::not_initialized;
  launch_named(*handle, function, written);
  return Status::success;
}

// A reduction to one number: in host memory when the pointer mode says so, and then the call waits for it.
Status reduce(const Handle* handle, const char* function, void* result, size_t bytes) {
  if (handle == nullptr) return Status::not_initialized;
  if (result == nullptr) return Status::invalid_value;
  const bool on_host = handle->pointer_mode == PointerMode::host;
  const StreamId stream = launch_named(*handle, function, {on_host ? Written{} : Written{result, bytes}});
  if (on_host) phantora::shim::give_unknown_result(stream, function, result, bytes);
  return Status::success;
}

Status times_vector(const Handle* handle, const char* function, Operation transa, int64_t rows, int64_t cols,
                    DataType type, void* y, int64_t increment) {
  if (handle == nullptr) return Status::not_initialized;
  const int64_t m = transa == Operation::none ? rows : cols;
  const int64_t k = transa == Operation::none ? cols : rows;
  if (m <= 0 || k < 0) return m < 0 || k < 0 ? Status::invalid_value : Status::success;
  const Product product{m, 1, k, 1, transa, Operation::none, type, type};
  launch_product(*handle, function, product, {vector(y, m, increment, type)});
  return Status::success;
}

// A rank-1 or rank-2 update of a matrix.
Status outer_product(const Handle* handle, const char* function, int64_t m, int64_t n, int64_t k, DataType type,
                     void* a, int64_t lda) {
  if (handle == nullptr) return Status::not_initialized;
  if (m <= 0 || n <= 0) return m < 0 || n < 0 ? Status::invalid_value : Status::success;
  const Product product{m, n, k, 1, Operation::none, Operation::none, type, type};
  launch_product(*handle, function, product, {Matrix{a, m, n, lda}.written(type)});
  return Status::success;
}

}  // namespace

extern "C" {

#define VECTOR_UPDATES(L, type)                                                                                \
  Status cublas##L##axpy_v2(Handle* h, int n, const void*, const void*, int, void* y, int incy) {              \
    return update(h, "cublas" #L "axpy_v2", {vector(y, n, incy, type)});                                       \
  }                                                                                                            \
  Status cublas##L##copy_v2(Handle* h, int n, const void*, int, void* y, int incy) {                           \
    return update(h, "cublas" #L "copy_v2", {vector(y, n, incy, type)});                                       \
  }                                                                                                            \
  Status cublas##L##swap_v2(Handle* h, int n, void* x, int incx, void* y, int incy) {                          \
    return update(h, "cublas" #L "swap_v2", {vector(x, n, incx, type), vector(y, n, incy, type)});             \
  }                                                                                                            \
  Status cublas##L##scal_v2(Handle* h, int n, const void*, void* x, int incx) {                                \
    return update(h, "cublas" #L "scal_v2", {vector(x, n, incx, type)});                                       \
  }                                                                                                            \
  Status cublas##L##rot_v2(Handle* h, int n, void* x, int incx, void* y, int incy, const void*, const void*) { \
    return update(h, "cublas" #L "rot_v2", {vector(x, n, incx, type), vector(y, n, incy, type)});              \
  }

VECTOR_UPDATES(S, DataType::r32f)
VECTOR_UPDATES(D, DataType::r64f)
VECTOR_UPDATES(C, DataType::c32f)
VECTOR_UPDATES(Z, DataType::c64f)

#define REAL_ROTATION(name, type)                                                                 \
  Status name(Handle* h, int n, void* x, int incx, void* y, int incy, const void*, const void*) { \
    return update(h, #name, {vector(x, n, incx, type), vector(y, n, incy, type)});                \
  }
REAL_ROTATION(cublasCsrot_v2, DataType::c32f)
REAL_ROTATION(cublasZdrot_v2, DataType::c64f)

#define REAL_SCALE(name, type) \
  Status name(Handle* h, int n, const void*, void* x, int incx) { return update(h, #name, {vector(x, n, incx, type)}); }
REAL_SCALE(cublasCsscal_v2, DataType::c32f)
REAL_SCALE(cublasZdscal_v2, DataType::c64f)

#define MODIFIED_ROTATION(name, type)                                                \
  Status name(Handle* h, int n, void* x, int incx, void* y, int incy, const void*) { \
    return update(h, #name, {vector(x, n, incx, type), vector(y, n, incy, type)});   \
  }
MODIFIED_ROTATION(cublasSrotm_v2, DataType::r32f)
MODIFIED_ROTATION(cublasDrotm_v2, DataType::r64f)

#define DOT(name, bytes)                                                          \
  Status name(Handle* h, int, const void*, int, const void*, int, void* result) { \
    return reduce(h, #name, result, bytes);                                       \
  }
DOT(cublasSdot_v2, 4)
DOT(cublasDdot_v2, 8)
DOT(cublasCdotu_v2, 8)
DOT(cublasCdotc_v2, 8)
DOT(cublasZdotu_v2, 16)
DOT(cublasZdotc_v2, 16)

Status cublasDotEx(Handle* h, int, const void*, DataType, int, const void*, DataType, int, void* result, DataType type,
                   DataType) {
  return reduce(h, "cublasDotEx", result, phantora::shim::bytes_of(type, 1));
}

#define REDUCTION(name, bytes) \
  Status name(Handle* h, int, const void*, int, void* result) { return reduce(h, #name, result, bytes); }
REDUCTION(cublasSnrm2_v2, 4)
REDUCTION(cublasDnrm2_v2, 8)
REDUCTION(cublasScnrm2_v2, 4)
REDUCTION(cublasDznrm2_v2, 8)
REDUCTION(cublasSasum_v2, 4)
REDUCTION(cublasDasum_v2, 8)
REDUCTION(cublasScasum_v2, 4)
REDUCTION(cublasDzasum_v2, 8)
REDUCTION(cublasIsamax_v2, 4)
REDUCTION(cublasIdamax_v2, 4)
REDUCTION(cublasIcamax_v2, 4)
REDUCTION(cublasIzamax_v2, 4)
REDUCTION(cublasIsamin_v2, 4)
REDUCTION(cublasIdamin_v2, 4)
REDUCTION(cublasIcamin_v2, 4)
REDUCTION(cublasIzamin_v2, 4)

#define GENERAL_TIMES_VECTOR(L, type)                                                                               \
  Status cublas##L##gemv_v2(Handle* h, Operation ta, int m, int n, const void*, const void*, int, const void*, int, \
                            const void*, void* y, int incy) {                                                       \
    return times_vector(h, "cublas" #L "gemv_v2", ta, m, n, type, y, incy);                                         \
  }                                                                                                                 \
  Status cublas##L##trmv_v2(Handle* h, int, Operation ta, int, int n, const void*, int, void* x, int incx) {        \
    return times_vector(h, "cublas" #L "trmv_v2", ta, n, n, type, x, incx);                                         \
  }                                                                                                                 \
  Status cublas##L##trsv_v2(Handle* h, int, Operation ta, int, int n, const void*, int, void* x, int incx) {        \
    return times_vector(h, "cublas" #L "trsv_v2", ta, n, n, type, x, incx);                                         \
  }

GENERAL_TIMES_VECTOR(S, DataType::r32f)
GENERAL_TIMES_VECTOR(D, DataType::r64f)
GENERAL_TIMES_VECTOR(C, DataType::c32f)
GENERAL_TIMES_VECTOR(Z, DataType::c64f)

#define SYMMETRIC_TIMES_VECTOR(name, type)                                                                  \
  Status name(Handle* h, int, int n, const void*, const void*, int, const void*, int, const void*, void* y, \
              int incy) {                                                                                   \
    return times_vector(h, #name, Operation::none, n, n, type, y, incy);                                    \
  }
SYMMETRIC_TIMES_VECTOR(cublasSsymv_v2, DataType::r32f)
SYMMETRIC_TIMES_VECTOR(cublasDsymv_v2, DataType::r64f)
SYMMETRIC_TIMES_VECTOR(cublasCsymv_v2, DataType::c32f)
SYMMETRIC_TIMES_VECTOR(cublasZsymv_v2, DataType::c64f)
SYMMETRIC_TIMES_VECTOR(cublasChemv_v2, DataType::c32f)
SYMMETRIC_TIMES_VECTOR(cublasZhemv_v2, DataType::c64f)

#define GENERAL_RANK_1(name, type)                                                                          \
  Status name(Handle* h, int m, int n, const void*, const void*, int, const void*, int, void* a, int lda) { \
    return outer_product(h, #name, m, n, 1, type, a, lda);                                                  \
  }
GENERAL_RANK_1(cublasSger_v2, DataType::r32f)
GENERAL_RANK_1(cublasDger_v2, DataType::r64f)
GENERAL_RANK_1(cublasCgeru_v2, DataType::c32f)
GENERAL_RANK_1(cublasCgerc_v2, DataType::c32f)
GENERAL_RANK_1(cublasZgeru_v2, DataType::c64f)
GENERAL_RANK_1(cublasZgerc_v2, DataType::c64f)

#define SYMMETRIC_RANK_1(name, type)                                                    \
  Status name(Handle* h, int, int n, const void*, const void*, int, void* a, int lda) { \
    return outer_product(h, #name, n, n, 1, type, a, lda);                              \
  }
SYMMETRIC_RANK_1(cublasSsyr_v2, DataType::r32f)
SYMMETRIC_RANK_1(cublasDsyr_v2, DataType::r64f)
SYMMETRIC_RANK_1(cublasCsyr_v2, DataType::c32f)
SYMMETRIC_RANK_1(cublasZsyr_v2, DataType::c64f)
SYMMETRIC_RANK_1(cublasCher_v2, DataType::c32f)
SYMMETRIC_RANK_1(cublasZher_v2, DataType::c64f)

#define SYMMETRIC_RANK_2(name, type)                                                                      \
  Status name(Handle* h, int, int n, const void*, const void*, int, const void*, int, void* a, int lda) { \
    return outer_product(h, #name, n, n, 2, type, a, lda);                                                \
  }
SYMMETRIC_RANK_2(cublasSsyr2_v2, DataType::r32f)
SYMMETRIC_RANK_2(cublasDsyr2_v2, DataType::r64f)
SYMMETRIC_RANK_2(cublasCsyr2_v2, DataType::c32f)
SYMMETRIC_RANK_2(cublasZsyr2_v2, DataType::c64f)
SYMMETRIC_RANK_2(cublasCher2_v2, DataType::c32f)
SYMMETRIC_RANK_2(cublasZher2_v2, DataType::c64f)

}  // extern "C"
