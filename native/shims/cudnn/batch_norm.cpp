// Batch normalisation. Workspace and reserve space are zero: NVIDIA publishes no sizes, and they are small.
#include "cudnn/descriptors.h"
#include "cudnn/handle.h"

using phantora::cudnn::Handle;
using phantora::cudnn::launch_named;
using phantora::cudnn::Status;
using phantora::cudnn::Tensor;

namespace {

Status no_space(size_t* bytes) {
  if (bytes == nullptr) return Status::null_pointer;
  *bytes = 0;
  return Status::success;
}

}  // namespace

extern "C" {

Status cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(Handle*, int, int, const Tensor*, const Tensor*,
                                                                const Tensor*, const Tensor*, const void*,
                                                                size_t* bytes) {
  return no_space(bytes);
}
Status cudnnGetBatchNormalizationBackwardExWorkspaceSize(Handle*, int, int, const Tensor*, const Tensor*, const Tensor*,
                                                         const Tensor*, const Tensor*, const Tensor*, const void*,
                                                         size_t* bytes) {
  return no_space(bytes);
}
Status cudnnGetBatchNormalizationTrainingExReserveSpaceSize(Handle*, int, int, const void*, const Tensor*,
                                                            size_t* bytes) {
  return no_space(bytes);
}

Status cudnnBatchNormalizationForwardInference(Handle* handle, int, const void*, const void*, const Tensor*,
                                               const void*, const Tensor* y_desc, void* y, const Tensor*, const void*,
                                               const void*, const void*, const void*, double) {
  if (y_desc == nullptr) return Status::null_pointer;
  return launch_named(handle, __func__, {y_desc->written(y)});
}

Status cudnnBatchNormalizationForwardTrainingEx(Handle* handle, int, int, const void*, const void*, const Tensor*,
                                                const void*, const Tensor*, const void*, const Tensor* y_desc, void* y,
                                                const Tensor* statistics, const void*, const void*, double,
                                                void* running_mean, void* running_variance, double, void* saved_mean,
                                                void* saved_variance, const void*, void*, size_t, void* reserve,
                                                size_t reserve_bytes) {
  if (y_desc == nullptr || statistics == nullptr) return Status::null_pointer;
  return launch_named(handle, __func__,
                      {y_desc->written(y),
                       statistics->written(running_mean),
                       statistics->written(running_variance),
                       statistics->written(saved_mean),
                       statistics->written(saved_variance),
                       {reserve, reserve_bytes}});
}

Status cudnnBatchNormalizationBackwardEx(Handle* handle, int, int, const void*, const void*, const void*, const void*,
                                         const Tensor*, const void*, const Tensor*, const void*, const Tensor*,
                                         const void*, const Tensor* dz_desc, void* dz, const Tensor* dx_desc, void* dx,
                                         const Tensor* parameters, const void*, const void*, void* dscale, void* dbias,
                                         double, const void*, const void*, const void*, void*, size_t, void*, size_t) {
  if (dx_desc == nullptr || parameters == nullptr) return Status::null_pointer;
  return launch_named(handle, __func__,
                      {dz_desc ? dz_desc->written(dz) : phantora::shim::Written{}, dx_desc->written(dx),
                       parameters->written(dscale), parameters->written(dbias)});
}

}  // extern "C"
