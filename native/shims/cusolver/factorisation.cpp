// Factorisations and the solves with them, as products of equal work:
//   potrf n³/3           n, n, n/6          potrs, getrs, sytrs 2n²·nrhs    n, nrhs, n
//   getrf 2/3 n³         n, n, n/3          (m×n: min(m, n) for n)
//   sytrf n³/3           n, n, n/6
//   geqrf, orgqr 2n²(m - n/3)               m, n, n - n²/3m
//   ormqr 4mnk           m, n, 2k
#include "cusolver/handle.h"

using phantora::cusolver::Handle;
using phantora::cusolver::info;
using phantora::cusolver::matrix;
using phantora::cusolver::panel;
using phantora::cusolver::run;
using phantora::cusolver::Status;
using phantora::cusolver::vector;
using phantora::shim::DataType;
using phantora::shim::overwrite_through;

namespace {

int64_t qr_depth(int64_t m, int64_t n) {
  const int64_t tall = std::max<int64_t>({m, n, 1}), narrow = std::min(m, n);
  return narrow - narrow * narrow / (3 * tall);
}

// Batched by pointers: the matrices themselves are found through the array.
Status run_through(const Handle* handle, const char* function, DataType type, int64_t m, int64_t n, int64_t k,
                   void* const* matrices, int64_t ld, int* device_info, int64_t batch) {
  const Status status = run(handle, function, type, m, n, k, {info(device_info, batch)}, batch);
  if (status != Status::success) return status;
  overwrite_through(phantora::streams::enter_or_fail(handle->stream, function), matrices, batch,
                    matrix(nullptr, m, n, ld, type).bytes);
  return status;
}

}  // namespace

extern "C" {

#define FACTORISATIONS(L, type)                                                                                        \
  Status cusolverDn##L##potrf_bufferSize(Handle*, int, int n, void*, int, int* work) { return panel(n, n, work); }     \
  Status cusolverDn##L##potrf(Handle* h, int, int n, void* a, int lda, void*, int, int* device_info) {                 \
    return run(h, "cusolverDn" #L "potrf", type, n, n, n / 6, {matrix(a, n, n, lda, type), info(device_info)});        \
  }                                                                                                                    \
  Status cusolverDn##L##potrs(Handle* h, int, int n, int nrhs, const void*, int, void* b, int ldb, int* device_info) { \
    return run(h, "cusolverDn" #L "potrs", type, n, nrhs, n, {matrix(b, n, nrhs, ldb, type), info(device_info)});      \
  }                                                                                                                    \
  Status cusolverDn##L##potrfBatched(Handle* h, int, int n, void* a[], int lda, int* device_info, int batch) {         \
    return run_through(h, "cusolverDn" #L "potrfBatched", type, n, n, n / 6, a, lda, device_info, batch);              \
  }                                                                                                                    \
  Status cusolverDn##L##potrsBatched(Handle* h, int, int n, int nrhs, void*[], int, void* b[], int ldb,                \
                                     int* device_info, int batch) {                                                    \
    return run_through(h, "cusolverDn" #L "potrsBatched", type, n, nrhs, n, b, ldb, device_info, batch);               \
  }                                                                                                                    \
  Status cusolverDn##L##getrf_bufferSize(Handle*, int m, int n, void*, int, int* work) { return panel(m, n, work); }   \
  Status cusolverDn##L##getrf(Handle* h, int m, int n, void* a, int lda, void*, int* pivots, int* device_info) {       \
    return run(h, "cusolverDn" #L "getrf", type, m, n, std::min(m, n) / 3,                                             \
               {matrix(a, m, n, lda, type), vector(pivots, std::min(m, n), DataType::r32i), info(device_info)});       \
  }                                                                                                                    \
  Status cusolverDn##L##getrs(Handle* h, int, int n, int nrhs, const void*, int, const int*, void* b, int ldb,         \
                              int* device_info) {                                                                      \
    return run(h, "cusolverDn" #L "getrs", type, n, nrhs, n, {matrix(b, n, nrhs, ldb, type), info(device_info)});      \
  }                                                                                                                    \
  Status cusolverDn##L##geqrf_bufferSize(Handle*, int m, int n, void*, int, int* work) { return panel(m, n, work); }   \
  Status cusolverDn##L##geqrf(Handle* h, int m, int n, void* a, int lda, void* tau, void*, int, int* device_info) {    \
    return run(h, "cusolverDn" #L "geqrf", type, m, n, qr_depth(m, n),                                                 \
               {matrix(a, m, n, lda, type), vector(tau, std::min(m, n), type), info(device_info)});                    \
  }                                                                                                                    \
  Status cusolverDn##L##sytrf_bufferSize(Handle*, int n, void*, int, int* work) { return panel(n, n, work); }          \
  Status cusolverDn##L##sytrf(Handle* h, int, int n, void* a, int lda, int* pivots, void*, int, int* device_info) {    \
    return run(h, "cusolverDn" #L "sytrf", type, n, n, n / 6,                                                          \
               {matrix(a, n, n, lda, type), vector(pivots, n, DataType::r32i), info(device_info)});                    \
  }

FACTORISATIONS(S, DataType::r32f)
FACTORISATIONS(D, DataType::r64f)
FACTORISATIONS(C, DataType::c32f)
FACTORISATIONS(Z, DataType::c64f)

#define ORTHOGONAL(form, apply, type)                                                                                  \
  Status cusolverDn##form##_bufferSize(Handle*, int m, int n, int, const void*, int, const void*, int* work) {         \
    return panel(m, n, work);                                                                                          \
  }                                                                                                                    \
  Status cusolverDn##form(Handle* h, int m, int n, int, void* a, int lda, const void*, void*, int, int* device_info) { \
    return run(h, "cusolverDn" #form, type, m, n, qr_depth(m, n), {matrix(a, m, n, lda, type), info(device_info)});    \
  }                                                                                                                    \
  Status cusolverDn##apply##_bufferSize(Handle*, int, int, int m, int n, int, const void*, int, const void*,           \
                                        const void*, int, int* work) {                                                 \
    return panel(m, n, work);                                                                                          \
  }                                                                                                                    \
  Status cusolverDn##apply(Handle* h, int, int, int m, int n, int k, const void*, int, const void*, void* c, int ldc,  \
                           void*, int, int* device_info) {                                                             \
    return run(h, "cusolverDn" #apply, type, m, n, 2 * k, {matrix(c, m, n, ldc, type), info(device_info)});            \
  }

ORTHOGONAL(Sorgqr, Sormqr, DataType::r32f)
ORTHOGONAL(Dorgqr, Dormqr, DataType::r64f)
ORTHOGONAL(Cungqr, Cunmqr, DataType::c32f)
ORTHOGONAL(Zungqr, Zunmqr, DataType::c64f)

Status cusolverDnXpotrf_bufferSize(Handle*, void*, int, int64_t n, DataType type, const void*, int64_t, DataType,
                                   size_t* device, size_t* host) {
  return panel(n, n, type, device, host);
}
Status cusolverDnXpotrf(Handle* h, void*, int, int64_t n, DataType type, void* a, int64_t lda, DataType, void*, size_t,
                        void*, size_t, int* device_info) {
  return run(h, "cusolverDnXpotrf", type, n, n, n / 6, {matrix(a, n, n, lda, type), info(device_info)});
}
Status cusolverDnXpotrs(Handle* h, void*, int, int64_t n, int64_t nrhs, DataType type, const void*, int64_t, DataType,
                        void* b, int64_t ldb, int* device_info) {
  return run(h, "cusolverDnXpotrs", type, n, nrhs, n, {matrix(b, n, nrhs, ldb, type), info(device_info)});
}

Status cusolverDnXgeqrf_bufferSize(Handle*, void*, int64_t m, int64_t n, DataType type, const void*, int64_t, DataType,
                                   const void*, DataType, size_t* device, size_t* host) {
  return panel(m, n, type, device, host);
}
Status cusolverDnXgeqrf(Handle* h, void*, int64_t m, int64_t n, DataType type, void* a, int64_t lda, DataType,
                        void* tau, DataType, void*, size_t, void*, size_t, int* device_info) {
  return run(h, "cusolverDnXgeqrf", type, m, n, qr_depth(m, n),
             {matrix(a, m, n, lda, type), vector(tau, std::min(m, n), type), info(device_info)});
}

Status cusolverDnXsytrs_bufferSize(Handle*, int, int64_t n, int64_t nrhs, DataType type, const void*, int64_t,
                                   const int64_t*, DataType, void*, int64_t, size_t* device, size_t* host) {
  return panel(n, nrhs, type, device, host);
}
Status cusolverDnXsytrs(Handle* h, int, int64_t n, int64_t nrhs, DataType type, const void*, int64_t, const int64_t*,
                        DataType, void* b, int64_t ldb, void*, size_t, void*, size_t, int* device_info) {
  return run(h, "cusolverDnXsytrs", type, n, nrhs, n, {matrix(b, n, nrhs, ldb, type), info(device_info)});
}

}  // extern "C"
