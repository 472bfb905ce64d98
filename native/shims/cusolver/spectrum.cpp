// Singular values and eigenvalues, as products of equal work (operation counts of Golub and Van Loan's algorithms):
//   gesvd m×n    values 4mn² - 4/3n³; with vectors 14mn² + 8n³     m, n, 2n or 7n + 4n²/m     (m ≥ n; else exchanged)
//   syevd n      values 4/3 n³; with vectors 9n³                   n, n, 2/3 n or 4.5 n
//   geev n       values 10 n³; with vectors 25 n³                  n, n, 5n or 12n
#include "cusolver/handle.h"

using phantora::cusolver::Handle;
using phantora::cusolver::info;
using phantora::cusolver::matrix;
using phantora::cusolver::panel;
using phantora::cusolver::real_of;
using phantora::cusolver::run;
using phantora::cusolver::Status;
using phantora::cusolver::vector;
using phantora::shim::DataType;

namespace {

int64_t svd_depth(int64_t m, int64_t n, bool vectors) {
  const int64_t tall = std::max<int64_t>({m, n, 1}), narrow = std::min(m, n);
  return vectors ? 7 * narrow + 4 * narrow * narrow / tall : 2 * narrow;
}

int64_t symmetric_depth(int64_t n, bool vectors) { return vectors ? 9 * n / 2 : 2 * n / 3; }

}  // namespace

extern "C" {

#define SINGULAR_VALUES(L, type)                                                                                       \
  Status cusolverDn##L##gesvd_bufferSize(Handle*, int m, int n, int* work) { return panel(m, n, work); }               \
  Status cusolverDn##L##gesvd(Handle* h, signed char jobu, signed char, int m, int n, void* a, int lda, void* s,       \
                              void* u, int ldu, void* vt, int ldvt, void*, int, void*, int* device_info) {             \
    return run(h, "cusolverDn" #L "gesvd", type, m, n, svd_depth(m, n, jobu != 'N'),                                   \
               {matrix(a, m, n, lda, type), vector(s, std::min(m, n), real_of(type)),                                  \
                matrix(u, m, jobu == 'N' ? 0 : std::min(m, n), ldu, type),                                             \
                matrix(vt, jobu == 'N' ? 0 : std::min(m, n), n, ldvt, type), info(device_info)});                      \
  }                                                                                                                    \
  Status cusolverDn##L##gesvdj_bufferSize(Handle*, int, int, int m, int n, const void*, int, const void*, const void*, \
                                          int, const void*, int, int* work, const void*) {                             \
    return panel(m, n, work);                                                                                          \
  }                                                                                                                    \
  Status cusolverDn##L##gesvdj(Handle* h, int vectors, int economic, int m, int n, void* a, int lda, void* s, void* u, \
                               int ldu, void* v, int ldv, void*, int, int* device_info, const void*) {                 \
    const int ucols = !vectors   ? 0                                                                                   \
                      : economic ? std::min(m, n)                                                                      \
                                 : m,                                                                                  \
              vcols = !vectors   ? 0                                                                                   \
                      : economic ? std::min(m, n)                                                                      \
                                 : n;                                                                                  \
    return run(h, "cusolverDn" #L "gesvdj", type, m, n, svd_depth(m, n, vectors),                                      \
               {matrix(a, m, n, lda, type), vector(s, std::min(m, n), real_of(type)), matrix(u, m, ucols, ldu, type),  \
                matrix(v, n, vcols, ldv, type), info(device_info)});                                                   \
  }                                                                                                                    \
  Status cusolverDn##L##gesvdjBatched_bufferSize(Handle*, int, int m, int n, const void*, int, const void*,            \
                                                 const void*, int, const void*, int, int* work, const void*, int) {    \
    return panel(m, n, work);                                                                                          \
  }                                                                                                                    \
  Status cusolverDn##L##gesvdjBatched(Handle* h, int vectors, int m, int n, void* a, int lda, void* s, void* u,        \
                                      int ldu, void* v, int ldv, void*, int, int* device_info, const void*,            \
                                      int batch) {                                                                     \
    const int ucols = vectors ? m : 0, vcols = vectors ? n : 0;                                                        \
    return run(h, "cusolverDn" #L "gesvdjBatched", type, m, n, svd_depth(m, n, vectors),                               \
               {matrix(a, m, n, lda, type, batch, int64_t{lda} * n),                                                   \
                vector(s, int64_t{std::min(m, n)} * batch, real_of(type)),                                             \
                matrix(u, m, ucols, ldu, type, batch, int64_t{ldu} * m),                                               \
                matrix(v, n, vcols, ldv, type, batch, int64_t{ldv} * n), info(device_info, batch)},                    \
               batch);                                                                                                 \
  }                                                                                                                    \
  Status cusolverDn##L##gesvdaStridedBatched_bufferSize(Handle*, int, int, int m, int n, const void*, int, long long,  \
                                                        const void*, long long, const void*, int, long long,           \
                                                        const void*, int, long long, int* work, int) {                 \
    return panel(m, n, work);                                                                                          \
  }                                                                                                                    \
  Status cusolverDn##L##gesvdaStridedBatched(Handle* h, int vectors, int rank, int m, int n, const void*, int,         \
                                             long long, void* s, long long stride_s, void* u, int ldu,                 \
                                             long long stride_u, void* v, int ldv, long long stride_v, void*, int,     \
                                             int* device_info, double* residuals, int batch) {                         \
    for (int i = 0; residuals != nullptr && i < batch; ++i) residuals[i] = 0;                                          \
    return run(h, "cusolverDn" #L "gesvdaStridedBatched", type, m, n, svd_depth(m, n, vectors),                        \
               {matrix(s, rank, 1, rank, real_of(type), batch, stride_s),                                              \
                matrix(u, m, vectors ? rank : 0, ldu, type, batch, stride_u),                                          \
                matrix(v, n, vectors ? rank : 0, ldv, type, batch, stride_v), info(device_info, batch)},               \
               batch);                                                                                                 \
  }

SINGULAR_VALUES(S, DataType::r32f)
SINGULAR_VALUES(D, DataType::r64f)
SINGULAR_VALUES(C, DataType::c32f)
SINGULAR_VALUES(Z, DataType::c64f)

#define SYMMETRIC_EIGENVALUES(name, type)                                                                          \
  Status cusolverDn##name##d_bufferSize(Handle*, int, int, int n, const void*, int, const void*, int* work) {      \
    return panel(n, n, work);                                                                                      \
  }                                                                                                                \
  Status cusolverDn##name##d(Handle* h, int vectors, int, int n, void* a, int lda, void* w, void*, int,            \
                             int* device_info) {                                                                   \
    return run(h, "cusolverDn" #name "d", type, n, n, symmetric_depth(n, vectors),                                 \
               {matrix(a, n, n, lda, type), vector(w, n, real_of(type)), info(device_info)});                      \
  }                                                                                                                \
  Status cusolverDn##name##jBatched_bufferSize(Handle*, int, int, int n, const void*, int, const void*, int* work, \
                                               const void*, int) {                                                 \
    return panel(n, n, work);                                                                                      \
  }                                                                                                                \
  Status cusolverDn##name##jBatched(Handle* h, int vectors, int, int n, void* a, int lda, void* w, void*, int,     \
                                    int* device_info, const void*, int batch) {                                    \
    return run(h, "cusolverDn" #name "jBatched", type, n, n, symmetric_depth(n, vectors),                          \
               {matrix(a, n, n, lda, type, batch, int64_t{lda} * n), vector(w, int64_t{n} * batch, real_of(type)), \
                info(device_info, batch)},                                                                         \
               batch);                                                                                             \
  }

SYMMETRIC_EIGENVALUES(Ssyev, DataType::r32f)
SYMMETRIC_EIGENVALUES(Dsyev, DataType::r64f)
SYMMETRIC_EIGENVALUES(Cheev, DataType::c32f)
SYMMETRIC_EIGENVALUES(Zheev, DataType::c64f)

Status cusolverDnXsyevd_bufferSize(Handle*, void*, int, int, int64_t n, DataType type, const void*, int64_t, DataType,
                                   const void*, DataType, size_t* device, size_t* host) {
  return panel(n, n, type, device, host);
}
Status cusolverDnXsyevd(Handle* h, void*, int vectors, int, int64_t n, DataType type, void* a, int64_t lda,
                        DataType type_w, void* w, DataType, void*, size_t, void*, size_t, int* device_info) {
  return run(h, "cusolverDnXsyevd", type, n, n, symmetric_depth(n, vectors),
             {matrix(a, n, n, lda, type), vector(w, n, type_w), info(device_info)});
}

Status cusolverDnXsyevBatched_bufferSize(Handle*, void*, int, int, int64_t n, DataType type, const void*, int64_t,
                                         DataType, const void*, DataType, size_t* device, size_t* host, int64_t) {
  return panel(n, n, type, device, host);
}
Status cusolverDnXsyevBatched(Handle* h, void*, int vectors, int, int64_t n, DataType type, void* a, int64_t lda,
                              DataType type_w, void* w, DataType, void*, size_t, void*, size_t, int* device_info,
                              int64_t batch) {
  return run(h, "cusolverDnXsyevBatched", type, n, n, symmetric_depth(n, vectors),
             {matrix(a, n, n, lda, type, batch, lda * n), vector(w, n * batch, type_w), info(device_info, batch)},
             batch);
}

Status cusolverDnXgeev_bufferSize(Handle*, void*, int, int, int64_t n, DataType type, const void*, int64_t, DataType,
                                  const void*, DataType, const void*, int64_t, DataType, const void*, int64_t, DataType,
                                  size_t* device, size_t* host) {
  return panel(n, n, type, device, host);
}
Status cusolverDnXgeev(Handle* h, void*, int left, int right, int64_t n, DataType type, void* a, int64_t lda,
                       DataType type_w, void* w, DataType type_vl, void* vl, int64_t ldvl, DataType type_vr, void* vr,
                       int64_t ldvr, DataType, void*, size_t, void*, size_t, int* device_info) {
  return run(h, "cusolverDnXgeev", type, n, n, left || right ? 12 * n : 5 * n,
             {matrix(a, n, n, lda, type), vector(w, n, type_w), matrix(vl, n, left ? n : 0, ldvl, type_vl),
              matrix(vr, n, right ? n : 0, ldvr, type_vr), info(device_info)});
}

}  // extern "C"
