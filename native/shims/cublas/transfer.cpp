// Copies of vectors and column-major matrices between host and device, in stream order.
#include "cublas/handle.h"
#include "phantora/memory.h"

using phantora::Launch;
using phantora::StreamId;
using phantora::cublas::Status;

namespace {

bool is_pageable(const void* host) { return phantora::memory::find(host).kind == phantora::memory::Kind::plain; }

// `count` pieces of `bytes` each, the pitches apart. One node: the hardware does a strided copy in one go.
StreamId copy(const char* function, const char* kind, bool pageable, void* stream, char* to, size_t to_pitch,
              const char* from, size_t from_pitch, size_t bytes, int64_t count) {
  const StreamId id = phantora::streams::enter_or_fail(stream, function);
  Launch launch;
  launch.kernel = function;
  launch.copy_kind = kind;
  launch.copy_bytes = bytes * count;
  launch.copy_is_pageable = pageable;
  phantora::launch(id, launch);
  if (to_pitch == bytes && from_pitch == bytes) {
    phantora::values::copy(id, to, from, bytes * count);
  } else {
    for (int64_t i = 0; i < count; ++i) phantora::values::copy(id, to + i * to_pitch, from + i * from_pitch, bytes);
  }
  return id;
}

// Copies to or from pageable memory are not asynchronous: the host may use it when the call returns.
void finish(StreamId stream) {
  phantora::recorder::sync_stream(stream);
  phantora::values::drain_stream(stream);
}

Status transfer(const char* function, const char* kind, void* stream, const void* host, void* to, int64_t to_pitch,
                const void* from, int64_t from_pitch, int64_t bytes, int64_t count) {
  if (bytes < 0 || count < 0 || (count > 1 && (to_pitch < bytes || from_pitch < bytes))) return Status::invalid_value;
  if (bytes == 0 || count == 0) return Status::success;
  const bool pageable = is_pageable(host);
  const StreamId id = copy(function, kind, pageable, stream, static_cast<char*>(to), to_pitch,
                           static_cast<const char*>(from), from_pitch, bytes, count);
  if (pageable) finish(id);
  return Status::success;
}

}  // namespace

extern "C" {

Status cublasSetMatrixAsync(int rows, int cols, int size, const void* a, int lda, void* b, int ldb, void* stream) {
  return transfer("cublasSetMatrixAsync", "h2d", stream, a, b, int64_t{ldb} * size, a, int64_t{lda} * size,
                  int64_t{rows} * size, cols);
}
Status cublasGetMatrixAsync(int rows, int cols, int size, const void* a, int lda, void* b, int ldb, void* stream) {
  return transfer("cublasGetMatrixAsync", "d2h", stream, b, b, int64_t{ldb} * size, a, int64_t{lda} * size,
                  int64_t{rows} * size, cols);
}
Status cublasSetVectorAsync(int n, int size, const void* x, int incx, void* y, int incy, void* stream) {
  if (incx <= 0 || incy <= 0 || size <= 0) return Status::invalid_value;
  return transfer("cublasSetVectorAsync", "h2d", stream, x, y, int64_t{incy} * size, x, int64_t{incx} * size, size, n);
}
Status cublasGetVectorAsync(int n, int size, const void* x, int incx, void* y, int incy, void* stream) {
  if (incx <= 0 || incy <= 0 || size <= 0) return Status::invalid_value;
  return transfer("cublasGetVectorAsync", "d2h", stream, y, y, int64_t{incy} * size, x, int64_t{incx} * size, size, n);
}

}  // extern "C"
