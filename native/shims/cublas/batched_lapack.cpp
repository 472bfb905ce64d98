// Factorisations and solves of many small matrices, each described as the product that does as much work:
//   getrf n×n        2/3 n³              product n, n, n/3
//   getrs            2 n² · nrhs         product n, nrhs, n
//   geqrf m×n        2 n² (m - n/3)      product m, n, n - n²/3m
//   gels m×n         geqrf and a solve
// Argument errors are the only ones that `info` in host memory tells; factors are never found singular.
#include <algorithm>

#include "cublas/handle.h"

using phantora::StreamId;
using phantora::cublas::Handle;
using phantora::cublas::launch_product;
using phantora::cublas::Status;
using phantora::shim::DataType;
using phantora::shim::Matrix;
using phantora::shim::Operation;
using phantora::shim::Product;
using phantora::shim::Written;

namespace {

Status factorise(const Handle* handle, const char* function, int64_t m, int64_t n, int64_t k, DataType type,
                 void* const* matrices, int64_t ld, int64_t batch, std::initializer_list<Written> written = {}) {
  if (handle == nullptr) return Status::not_initialized;
  if (m < 0 || n < 0 || batch < 0) return Status::invalid_value;
  if (m == 0 || n == 0 || batch == 0) return Status::success;
  const Product product{m,    n,    std::max<int64_t>(k, 1), batch, Operation::none, Operation::none,
                        type, type, Product::Kind::work};
  const StreamId stream = launch_product(*handle, function, product, written);
  phantora::shim::overwrite_through(stream, matrices, batch, Matrix{nullptr, m, n, ld}.written(type).bytes);
  return Status::success;
}

int64_t qr_depth(int64_t m, int64_t n) {
  const int64_t tall = std::max(m, n), narrow = std::min(m, n);
  return tall == 0 ? 0 : narrow - narrow * narrow / (3 * tall);
}

Written ints(int* pointer, int64_t count) { return {pointer, static_cast<size_t>(std::max<int64_t>(count, 0)) * 4}; }

void arguments_are_right(int* info) {
  if (info != nullptr) *info = 0;
}

}  // namespace

extern "C" {

#define BATCHED_LAPACK(L, type)                                                                                        \
  Status cublas##L##getrfBatched(Handle* h, int n, void* const* a, int lda, int* pivots, int* info, int batch) {       \
    return factorise(h, "cublas" #L "getrfBatched", n, n, n / 3, type, a, lda, batch,                                  \
                     {ints(pivots, int64_t{n} * batch), ints(info, batch)});                                           \
  }                                                                                                                    \
  Status cublas##L##getrsBatched(Handle* h, Operation, int n, int nrhs, const void* const*, int, const int*,           \
                                 void* const* b, int ldb, int* info, int batch) {                                      \
    arguments_are_right(info);                                                                                         \
    return factorise(h, "cublas" #L "getrsBatched", n, nrhs, n, type, b, ldb, batch);                                  \
  }                                                                                                                    \
  Status cublas##L##geqrfBatched(Handle* h, int m, int n, void* const* a, int lda, void* const* tau, int* info,        \
                                 int batch) {                                                                          \
    arguments_are_right(info);                                                                                         \
    const Status status = factorise(h, "cublas" #L "geqrfBatched", m, n, qr_depth(m, n), type, a, lda, batch);         \
    if (status == Status::success) {                                                                                   \
      const StreamId stream = phantora::streams::enter_or_fail(h->stream, "cublas" #L "geqrfBatched");                 \
      phantora::shim::overwrite_through(stream, tau, batch, phantora::shim::bytes_of(type, std::min(m, n)));           \
    }                                                                                                                  \
    return status;                                                                                                     \
  }                                                                                                                    \
  Status cublas##L##gelsBatched(Handle* h, Operation, int m, int n, int nrhs, void* const* a, int lda, void* const* c, \
                                int ldc, int* info, int* device_info, int batch) {                                     \
    arguments_are_right(info);                                                                                         \
    const Status status = factorise(h, "cublas" #L "gelsBatched", m, n, qr_depth(m, n), type, a, lda, batch,           \
                                    {ints(device_info, batch)});                                                       \
    return status == Status::success                                                                                   \
               ? factorise(h, "cublas" #L "gelsBatched", std::max(m, n), nrhs, n, type, c, ldc, batch)                 \
               : status;                                                                                               \
  }

BATCHED_LAPACK(S, DataType::r32f)
BATCHED_LAPACK(D, DataType::r64f)
BATCHED_LAPACK(C, DataType::c32f)
BATCHED_LAPACK(Z, DataType::c64f)

}  // extern "C"
