#include "cublas/handle.h"

using phantora::cublas::Handle;
using phantora::cublas::PointerMode;
using phantora::cublas::Status;

namespace {

// cuBLAS 13.1.1 as CUDA 13.0's wheels carry it.
constexpr int major_version = 13;
constexpr int minor_version = 1;
constexpr int patch_version = 1;

template <typename T>
Status store(const Handle* handle, T* out, T value) {
  if (handle == nullptr) return Status::not_initialized;
  if (out == nullptr) return Status::invalid_value;
  *out = value;
  return Status::success;
}

template <typename T>
Status assign(Handle* handle, T Handle::* field, T value) {
  if (handle == nullptr) return Status::not_initialized;
  handle->*field = value;
  return Status::success;
}

}  // namespace

extern "C" {

Status cublasCreate_v2(Handle** out) {
  if (out == nullptr) return Status::invalid_value;
  *out = new Handle;
  return Status::success;
}

Status cublasDestroy_v2(Handle* handle) {
  if (handle == nullptr) return Status::not_initialized;
  delete handle;
  return Status::success;
}

Status cublasSetStream_v2(Handle* handle, void* stream) {
  if (handle == nullptr) return Status::not_initialized;
  handle->stream = stream;
  handle->workspace = nullptr;  // documented: back to the default workspace pool
  handle->workspace_bytes = 0;
  return Status::success;
}
Status cublasGetStream_v2(Handle* handle, void** stream) {
  return handle == nullptr ? Status::not_initialized : store(handle, stream, handle->stream);
}

Status cublasSetWorkspace_v2(Handle* handle, void* workspace, size_t bytes) {
  if (handle == nullptr) return Status::not_initialized;
  handle->workspace = workspace;
  handle->workspace_bytes = bytes;
  return Status::success;
}

Status cublasSetPointerMode_v2(Handle* handle, PointerMode mode) { return assign(handle, &Handle::pointer_mode, mode); }
Status cublasGetPointerMode_v2(Handle* handle, PointerMode* mode) {
  return handle == nullptr ? Status::not_initialized : store(handle, mode, handle->pointer_mode);
}

Status cublasSetMathMode(Handle* handle, int math) { return assign(handle, &Handle::math, math); }
Status cublasGetMathMode(Handle* handle, int* math) {
  return handle == nullptr ? Status::not_initialized : store(handle, math, handle->math);
}

Status cublasSetAtomicsMode(Handle* handle, int atomics) { return assign(handle, &Handle::atomics, atomics); }
Status cublasGetAtomicsMode(Handle* handle, int* atomics) {
  return handle == nullptr ? Status::not_initialized : store(handle, atomics, handle->atomics);
}

Status cublasSetSmCountTarget(Handle* handle, int count) { return assign(handle, &Handle::sm_count_target, count); }
Status cublasGetSmCountTarget(Handle* handle, int* count) {
  return handle == nullptr ? Status::not_initialized : store(handle, count, handle->sm_count_target);
}

Status cublasGetVersion_v2(Handle*, int* version) {
  if (version == nullptr) return Status::invalid_value;
  *version = major_version * 10000 + minor_version * 100 + patch_version;
  return Status::success;
}

Status cublasGetProperty(int property, int* value) {
  constexpr int values[] = {major_version, minor_version, patch_version};
  if (property < 0 || property > 2 || value == nullptr) return Status::invalid_value;
  *value = values[property];
  return Status::success;
}

const char* cublasGetStatusName(Status status) {
  switch (status) {
    case Status::success:
      return "CUBLAS_STATUS_SUCCESS";
    case Status::not_initialized:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case Status::alloc_failed:
      return "CUBLAS_STATUS_ALLOC_FAILED";
    case Status::invalid_value:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case Status::arch_mismatch:
      return "CUBLAS_STATUS_ARCH_MISMATCH";
    case Status::mapping_error:
      return "CUBLAS_STATUS_MAPPING_ERROR";
    case Status::execution_failed:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    case Status::internal_error:
      return "CUBLAS_STATUS_INTERNAL_ERROR";
    case Status::not_supported:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    case Status::license_error:
      return "CUBLAS_STATUS_LICENSE_ERROR";
  }
  return "CUBLAS_STATUS_UNKNOWN";
}
const char* cublasGetStatusString(Status status) { return cublasGetStatusName(status); }

}  // extern "C"
