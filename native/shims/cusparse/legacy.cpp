// What PyTorch still calls of the older API: matrix descriptors, products and solves with block-sparse matrices.
#include "cusparse/handle.h"

using phantora::cusparse::create;
using phantora::cusparse::destroy;
using phantora::cusparse::Handle;
using phantora::cusparse::no_buffer;
using phantora::cusparse::run;
using phantora::cusparse::Status;
using phantora::shim::bytes_of;
using phantora::shim::DataType;
using phantora::shim::Written;

namespace {

struct MatrixDescription {};  // kind, fill mode, diagonal and index base: values only
struct SolveInfo {};          // bsrsv2Info_t, bsrsm2Info_t

Status present(const MatrixDescription* description) {
  return description == nullptr ? Status::invalid_value : Status::success;
}

Written columns(void* data, int64_t rows, int64_t cols, int64_t ld, DataType type) {
  if (rows <= 0 || cols <= 0) return {};
  return {data, bytes_of(type, ld * (cols - 1) + rows)};
}

}  // namespace

extern "C" {

Status cusparseCreateMatDescr(MatrixDescription** out) { return create(out); }
Status cusparseDestroyMatDescr(MatrixDescription* description) { return destroy(description); }
Status cusparseSetMatType(MatrixDescription* description, int) { return present(description); }
Status cusparseSetMatFillMode(MatrixDescription* description, int) { return present(description); }
Status cusparseSetMatDiagType(MatrixDescription* description, int) { return present(description); }
Status cusparseSetMatIndexBase(MatrixDescription* description, int) { return present(description); }

Status cusparseCreateBsrsv2Info(SolveInfo** out) { return create(out); }
Status cusparseDestroyBsrsv2Info(SolveInfo* solve) { return destroy(solve); }
Status cusparseCreateBsrsm2Info(SolveInfo** out) { return create(out); }
Status cusparseDestroyBsrsm2Info(SolveInfo* solve) { return destroy(solve); }

#define BLOCK_SPARSE(L, type)                                                                                          \
  Status cusparse##L##bsrmv(Handle* h, int, int, int mb, int, int, const void*, const void*, const void*, const int*,  \
                            const int*, int block, const void*, const void*, void* y) {                                \
    return run(h, "cusparse" #L "bsrmv", {columns(y, int64_t{mb} * block, 1, int64_t{mb} * block, type)});             \
  }                                                                                                                    \
  Status cusparse##L##bsrmm(Handle* h, int, int, int, int mb, int n, int, int, const void*, const void*, const void*,  \
                            const int*, const int*, int block, const void*, int, const void*, void* c, int ldc) {      \
    return run(h, "cusparse" #L "bsrmm", {columns(c, int64_t{mb} * block, n, ldc, type)});                             \
  }                                                                                                                    \
  Status cusparse##L##bsrsv2_bufferSize(Handle*, int, int, int, int, const void*, void*, const int*, const int*, int,  \
                                        SolveInfo*, int* bytes) {                                                      \
    return no_buffer(bytes);                                                                                           \
  }                                                                                                                    \
  Status cusparse##L##bsrsv2_analysis(Handle* h, int, int, int, int, const void*, const void*, const int*, const int*, \
                                      int, SolveInfo*, int, void*) {                                                   \
    return run(h, "cusparse" #L "bsrsv2_analysis", {});                                                                \
  }                                                                                                                    \
  Status cusparse##L##bsrsv2_solve(Handle* h, int, int, int mb, int, const void*, const void*, const void*,            \
                                   const int*, const int*, int block, SolveInfo*, const void*, void* x, int, void*) {  \
    return run(h, "cusparse" #L "bsrsv2_solve", {columns(x, int64_t{mb} * block, 1, int64_t{mb} * block, type)});      \
  }                                                                                                                    \
  Status cusparse##L##bsrsm2_bufferSize(Handle*, int, int, int, int, int, int, const void*, void*, const int*,         \
                                        const int*, int, SolveInfo*, int* bytes) {                                     \
    return no_buffer(bytes);                                                                                           \
  }                                                                                                                    \
  Status cusparse##L##bsrsm2_analysis(Handle* h, int, int, int, int, int, int, const void*, const void*, const int*,   \
                                      const int*, int, SolveInfo*, int, void*) {                                       \
    return run(h, "cusparse" #L "bsrsm2_analysis", {});                                                                \
  }                                                                                                                    \
  Status cusparse##L##bsrsm2_solve(Handle* h, int, int, int, int mb, int n, int, const void*, const void*,             \
                                   const void*, const int*, const int*, int block, SolveInfo*, const void*, int,       \
                                   void* x, int ldx, int, void*) {                                                     \
    return run(h, "cusparse" #L "bsrsm2_solve", {columns(x, int64_t{mb} * block, n, ldx, type)});                      \
  }

BLOCK_SPARSE(S, DataType::r32f)
BLOCK_SPARSE(D, DataType::r64f)
BLOCK_SPARSE(C, DataType::c32f)
BLOCK_SPARSE(Z, DataType::c64f)

}  // extern "C"
