#include "cudnn/descriptors.h"

#include <algorithm>

#include "cudnn/handle.h"
#include "phantora/config.h"

using phantora::cudnn::DataType;
using phantora::cudnn::Dropout;
using phantora::cudnn::Filter;
using phantora::cudnn::Handle;
using phantora::cudnn::Status;
using phantora::cudnn::Tensor;

namespace {

// Descriptors of operations that are only timed: their parameters are in the op's arguments.
struct Activation {};
struct Pooling {};

template <typename T>
Status create(T** out) {
  if (out == nullptr) return Status::null_pointer;
  *out = new T;
  return Status::success;
}

template <typename T>
Status destroy(T* descriptor) {
  delete descriptor;
  return Status::success;
}

template <typename T>
Status present(const T* descriptor) {
  return descriptor == nullptr ? Status::null_pointer : Status::success;
}

}  // namespace

extern "C" {

Status cudnnCreateTensorDescriptor(Tensor** out) { return create(out); }
Status cudnnDestroyTensorDescriptor(Tensor* tensor) { return destroy(tensor); }
Status cudnnSetTensorNdDescriptor(Tensor* tensor, DataType type, int count, const int dims[], const int strides[]) {
  if (tensor == nullptr || dims == nullptr || strides == nullptr) return Status::null_pointer;
  if (count < 0 || count > 8) return Status::not_supported;
  *tensor = {type, {dims, dims + count}, {strides, strides + count}};
  return Status::success;
}
Status cudnnGetTensorNdDescriptor(const Tensor* tensor, int requested, DataType* type, int* count, int dims[],
                                  int strides[]) {
  if (tensor == nullptr) return Status::null_pointer;
  const size_t stored = std::min<size_t>(std::max(requested, 0), tensor->dims.size());
  if (type != nullptr) *type = tensor->type;
  if (count != nullptr) *count = static_cast<int>(tensor->dims.size());
  if (dims != nullptr) std::copy_n(tensor->dims.begin(), stored, dims);
  if (strides != nullptr) std::copy_n(tensor->strides.begin(), stored, strides);
  return Status::success;
}

Status cudnnCreateFilterDescriptor(Filter** out) { return create(out); }
Status cudnnDestroyFilterDescriptor(Filter* filter) { return destroy(filter); }
Status cudnnSetFilterNdDescriptor(Filter* filter, DataType type, int format, int count, const int dims[]) {
  if (filter == nullptr || dims == nullptr) return Status::null_pointer;
  if (count < 0 || count > 8) return Status::not_supported;
  *filter = {type, format, {dims, dims + count}};
  return Status::success;
}
Status cudnnGetFilterNdDescriptor(const Filter* filter, int requested, DataType* type, int* format, int* count,
                                  int dims[]) {
  if (filter == nullptr) return Status::null_pointer;
  const size_t stored = std::min<size_t>(std::max(requested, 0), filter->dims.size());
  if (type != nullptr) *type = filter->type;
  if (format != nullptr) *format = filter->format;
  if (count != nullptr) *count = static_cast<int>(filter->dims.size());
  if (dims != nullptr) std::copy_n(filter->dims.begin(), stored, dims);
  return Status::success;
}

Status cudnnCreateActivationDescriptor(Activation** out) { return create(out); }
Status cudnnDestroyActivationDescriptor(Activation* activation) { return destroy(activation); }
Status cudnnSetActivationDescriptor(Activation* activation, int, int, double) { return present(activation); }

Status cudnnCreatePoolingDescriptor(Pooling** out) { return create(out); }
Status cudnnDestroyPoolingDescriptor(Pooling* pooling) { return destroy(pooling); }
Status cudnnSetPooling2dDescriptor(Pooling* pooling, int, int, int, int, int, int, int, int) {
  return present(pooling);
}
Status cudnnPoolingForward(Handle* handle, const Pooling* pooling, const void*, const Tensor*, const void*, const void*,
                           const Tensor* y_desc, void* y) {
  if (pooling == nullptr || y_desc == nullptr) return Status::null_pointer;
  return launch_named(handle, __func__, {y_desc->written(y)});
}

Status cudnnCreateDropoutDescriptor(Dropout** out) { return create(out); }
Status cudnnDestroyDropoutDescriptor(Dropout* dropout) { return destroy(dropout); }

// A generator's state (48 bytes) for every thread that the device holds: an estimate, NVIDIA publishes no figure.
Status cudnnDropoutGetStatesSize(Handle* handle, size_t* bytes) {
  if (handle == nullptr) return Status::not_initialized;
  if (bytes == nullptr) return Status::null_pointer;
  *bytes = size_t{48} * 2048 * phantora::config().sm_count;
  return Status::success;
}
Status cudnnRestoreDropoutDescriptor(Dropout* dropout, Handle* handle, float probability, void* states, size_t bytes,
                                     unsigned long long seed) {
  if (handle == nullptr || dropout == nullptr) return Status::null_pointer;
  *dropout = {probability, states, bytes, seed};
  return Status::success;
}
Status cudnnSetDropoutDescriptor(Dropout* dropout, Handle* handle, float probability, void* states, size_t bytes,
                                 unsigned long long seed) {
  const Status status = cudnnRestoreDropoutDescriptor(dropout, handle, probability, states, bytes, seed);
  if (status != Status::success || states == nullptr) return status;
  return launch_named(handle, __func__, {{states, bytes}});
}

}  // extern "C"
