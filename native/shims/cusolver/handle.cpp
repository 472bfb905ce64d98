#include "cusolver/handle.h"

using phantora::cusolver::Handle;
using phantora::cusolver::Status;

namespace {

struct Parameters {};     // cusolverDnParams_t
struct JacobiOptions {};  // gesvdjInfo_t: convergence only, which nothing computes

template <typename T>
Status create(T** out) {
  if (out == nullptr) return Status::invalid_value;
  *out = new T;
  return Status::success;
}

template <typename T>
Status destroy(T* object) {
  delete object;
  return Status::success;
}

}  // namespace

extern "C" {

Status cusolverDnCreate(Handle** out) { return create(out); }
Status cusolverDnDestroy(Handle* handle) { return destroy(handle); }
Status cusolverDnSetStream(Handle* handle, void* stream) {
  if (handle == nullptr) return Status::not_initialized;
  handle->stream = stream;
  return Status::success;
}
Status cusolverDnGetStream(Handle* handle, void** stream) {
  if (handle == nullptr) return Status::not_initialized;
  *stream = handle->stream;
  return Status::success;
}

Status cusolverDnCreateParams(Parameters** out) { return create(out); }
Status cusolverDnDestroyParams(Parameters* parameters) { return destroy(parameters); }

Status cusolverDnCreateGesvdjInfo(JacobiOptions** out) { return create(out); }
Status cusolverDnDestroyGesvdjInfo(JacobiOptions* options) { return destroy(options); }
Status cusolverDnXgesvdjSetTolerance(JacobiOptions*, double) { return Status::success; }
Status cusolverDnXgesvdjSetMaxSweeps(JacobiOptions*, int) { return Status::success; }
Status cusolverDnXgesvdjSetSortEig(JacobiOptions*, int) { return Status::success; }

}  // extern "C"
