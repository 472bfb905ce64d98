// The generic API: descriptors of sparse and dense operands, products and triangular solves. Products of two sparse
// matrices are unsupported: the size of their result is a value that nothing computes.
#include <algorithm>

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

struct Sparse {
  int64_t rows = 0, cols = 0, nonzeros = 0;
  void* values = nullptr;
  DataType type = DataType::r32f;
  int64_t batch = 1;
  int64_t values_stride = 0;

  Written written() const { return {values, bytes_of(type, values_stride * (batch - 1) + nonzeros)}; }
};

struct Dense {
  int64_t rows = 0, cols = 0, ld = 0;
  void* values = nullptr;
  DataType type = DataType::r32f;
  bool row_major = false;
  int64_t batch = 1;
  int64_t stride = 0;

  Written written() const {
    const int64_t lines = row_major ? rows : cols, width = row_major ? cols : rows;
    if (lines <= 0 || width <= 0) return {};
    return {values, bytes_of(type, stride * (batch - 1) + ld * (lines - 1) + width)};
  }
};

struct Vector {
  int64_t size = 0;
  void* values = nullptr;
  DataType type = DataType::r32f;

  Written written() const { return {values, bytes_of(type, size)}; }
};

struct Analysis {};  // cusparseSpSVDescr_t, cusparseSpSMDescr_t

}  // namespace

extern "C" {

Status cusparseCreate(Handle** out) { return create(out); }
Status cusparseDestroy(Handle* handle) { return destroy(handle); }
Status cusparseSetStream(Handle* handle, void* stream) {
  if (handle == nullptr) return Status::not_initialized;
  handle->stream = stream;
  return Status::success;
}
Status cusparseSetPointerMode(Handle* handle, int mode) {
  if (handle == nullptr) return Status::not_initialized;
  handle->pointer_mode = mode;
  return Status::success;
}
const char* cusparseGetErrorString(Status status) {
  switch (status) {
    case Status::success:
      return "success";
    case Status::not_initialized:
      return "initialization error";
    case Status::invalid_value:
      return "invalid value";
    case Status::not_supported:
      return "operation not supported";
  }
  return "unrecognized error code";
}

Status cusparseCreateCsr(Sparse** out, int64_t rows, int64_t cols, int64_t nonzeros, void*, void*, void* values, int,
                         int, int, DataType type) {
  return create(out, Sparse{rows, cols, nonzeros, values, type});
}
Status cusparseCreateCoo(Sparse** out, int64_t rows, int64_t cols, int64_t nonzeros, void*, void*, void* values, int,
                         int, DataType type) {
  return create(out, Sparse{rows, cols, nonzeros, values, type});
}
Status cusparseCsrSetPointers(Sparse* matrix, void*, void*, void* values) {
  if (matrix == nullptr) return Status::invalid_value;
  matrix->values = values;
  return Status::success;
}
Status cusparseCsrSetStridedBatch(Sparse* matrix, int batch, int64_t, int64_t stride) {
  if (matrix == nullptr) return Status::invalid_value;
  matrix->batch = std::max(batch, 1);
  matrix->values_stride = stride;
  return Status::success;
}
Status cusparseSpMatSetAttribute(Sparse* matrix, int, void*, size_t) {
  return matrix == nullptr ? Status::invalid_value : Status::success;  // fill mode and unit diagonal: values only
}
Status cusparseSpMatGetSize(const Sparse* matrix, int64_t* rows, int64_t* cols, int64_t* nonzeros) {
  if (!matrix || !rows || !cols || !nonzeros) return Status::invalid_value;
  *rows = matrix->rows;
  *cols = matrix->cols;
  *nonzeros = matrix->nonzeros;
  return Status::success;
}
Status cusparseDestroySpMat(const Sparse* matrix) { return destroy(matrix); }

Status cusparseCreateDnMat(Dense** out, int64_t rows, int64_t cols, int64_t ld, void* values, DataType type,
                           int order) {
  constexpr int row_major = 2;
  return create(out, Dense{rows, cols, ld, values, type, order == row_major});
}
Status cusparseDnMatSetStridedBatch(Dense* matrix, int batch, int64_t stride) {
  if (matrix == nullptr) return Status::invalid_value;
  matrix->batch = std::max(batch, 1);
  matrix->stride = stride;
  return Status::success;
}
Status cusparseDestroyDnMat(const Dense* matrix) { return destroy(matrix); }

Status cusparseCreateDnVec(Vector** out, int64_t size, void* values, DataType type) {
  return create(out, Vector{size, values, type});
}
Status cusparseDestroyDnVec(const Vector* vector) { return destroy(vector); }

Status cusparseSpMV_bufferSize(Handle*, int, const void*, const Sparse*, const Vector*, const void*, Vector*, DataType,
                               int, size_t* bytes) {
  return no_buffer(bytes);
}
Status cusparseSpMV(Handle* handle, int, const void*, const Sparse*, const Vector*, const void*, Vector* y, DataType,
                    int, void*) {
  return y == nullptr ? Status::invalid_value : run(handle, "cusparseSpMV", {y->written()});
}

Status cusparseSpMM_bufferSize(Handle*, int, int, const void*, const Sparse*, const Dense*, const void*, Dense*,
                               DataType, int, size_t* bytes) {
  return no_buffer(bytes);
}
Status cusparseSpMM(Handle* handle, int, int, const void*, const Sparse*, const Dense*, const void*, Dense* c, DataType,
                    int, void*) {
  return c == nullptr ? Status::invalid_value : run(handle, "cusparseSpMM", {c->written()});
}

Status cusparseSDDMM_bufferSize(Handle*, int, int, const void*, const Dense*, const Dense*, const void*, Sparse*,
                                DataType, int, size_t* bytes) {
  return no_buffer(bytes);
}
Status cusparseSDDMM_preprocess(Handle* handle, int, int, const void*, const Dense*, const Dense*, const void*, Sparse*,
                                DataType, int, void*) {
  return run(handle, "cusparseSDDMM_preprocess", {});
}
Status cusparseSDDMM(Handle* handle, int, int, const void*, const Dense*, const Dense*, const void*, Sparse* c,
                     DataType, int, void*) {
  return c == nullptr ? Status::invalid_value : run(handle, "cusparseSDDMM", {c->written()});
}

Status cusparseSpSV_createDescr(Analysis** out) { return create(out); }
Status cusparseSpSV_destroyDescr(Analysis* analysis) { return destroy(analysis); }
Status cusparseSpSV_bufferSize(Handle*, int, const void*, const Sparse*, const Vector*, Vector*, DataType, int,
                               Analysis*, size_t* bytes) {
  return no_buffer(bytes);
}
Status cusparseSpSV_analysis(Handle* handle, int, const void*, const Sparse*, const Vector*, Vector*, DataType, int,
                             Analysis*, void*) {
  return run(handle, "cusparseSpSV_analysis", {});
}
Status cusparseSpSV_solve(Handle* handle, int, const void*, const Sparse*, const Vector*, Vector* y, DataType, int,
                          Analysis*) {
  return y == nullptr ? Status::invalid_value : run(handle, "cusparseSpSV_solve", {y->written()});
}

Status cusparseSpSM_createDescr(Analysis** out) { return create(out); }
Status cusparseSpSM_destroyDescr(Analysis* analysis) { return destroy(analysis); }
Status cusparseSpSM_bufferSize(Handle*, int, int, const void*, const Sparse*, const Dense*, Dense*, DataType, int,
                               Analysis*, size_t* bytes) {
  return no_buffer(bytes);
}
Status cusparseSpSM_analysis(Handle* handle, int, int, const void*, const Sparse*, const Dense*, Dense*, DataType, int,
                             Analysis*, void*) {
  return run(handle, "cusparseSpSM_analysis", {});
}
Status cusparseSpSM_solve(Handle* handle, int, int, const void*, const Sparse*, const Dense*, Dense* c, DataType, int,
                          Analysis*) {
  return c == nullptr ? Status::invalid_value : run(handle, "cusparseSpSM_solve", {c->written()});
}

}  // extern "C"
