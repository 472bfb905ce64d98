// Connectionist temporal classification.
#include "cudnn/descriptors.h"
#include "cudnn/handle.h"

using phantora::cudnn::bytes_of;
using phantora::cudnn::DataType;
using phantora::cudnn::Handle;
using phantora::cudnn::launch_named;
using phantora::cudnn::Status;
using phantora::cudnn::Tensor;
using phantora::shim::Written;

namespace {

struct Loss {
  DataType type = DataType::f32;
  int max_label_length = 256;  // the most that cuDNN takes
};

// Forward and backward variables of every step, for want of published sizes. Dimensions are steps, batch, classes.
Status work_space(const Loss* loss, const Tensor* probabilities, size_t* bytes) {
  if (loss == nullptr || probabilities == nullptr || bytes == nullptr) return Status::null_pointer;
  if (probabilities->dims.size() != 3) return Status::bad_param;
  const int64_t states = 2 * loss->max_label_length + 1;
  *bytes = bytes_of(loss->type, 2 * states * probabilities->dims[0] * probabilities->dims[1]);
  return Status::success;
}

Status run(const Handle* handle, const char* function, const Tensor* probabilities, void* costs,
           const Tensor* gradients, void* gradient_data) {
  if (probabilities == nullptr || probabilities->dims.size() != 3) return Status::bad_param;
  const Written losses{costs, bytes_of(probabilities->type, probabilities->dims[1])};
  return launch_named(handle, function, {losses, gradients ? gradients->written(gradient_data) : Written{}});
}

}  // namespace

extern "C" {

Status cudnnCreateCTCLossDescriptor(Loss** out) {
  if (out == nullptr) return Status::null_pointer;
  *out = new Loss;
  return Status::success;
}
Status cudnnDestroyCTCLossDescriptor(Loss* loss) {
  delete loss;
  return Status::success;
}
Status cudnnSetCTCLossDescriptorEx(Loss* loss, DataType type, int, int) {
  if (loss == nullptr) return Status::null_pointer;
  loss->type = type;
  return Status::success;
}
Status cudnnSetCTCLossDescriptor_v9(Loss* loss, DataType type, int, int, int max_label_length) {
  if (loss == nullptr) return Status::null_pointer;
  *loss = {type, max_label_length};
  return Status::success;
}

Status cudnnGetCTCLossWorkspaceSize(Handle*, const Tensor* probabilities, const Tensor*, const int*, const int*,
                                    const int*, int, const Loss* loss, size_t* bytes) {
  return work_space(loss, probabilities, bytes);
}
Status cudnnGetCTCLossWorkspaceSize_v8(Handle*, int, const Loss* loss, const Tensor* probabilities, const Tensor*,
                                       size_t* bytes) {
  return work_space(loss, probabilities, bytes);
}

Status cudnnCTCLoss(Handle* handle, const Tensor* probabilities, const void*, const int[], const int[], const int[],
                    void* costs, const Tensor* gradients, void* gradient_data, int, const Loss*, void*, size_t) {
  return run(handle, __func__, probabilities, costs, gradients, gradient_data);
}
Status cudnnCTCLoss_v8(Handle* handle, int, const Loss*, const Tensor* probabilities, const void*, const int[],
                       const int[], const int[], void* costs, const Tensor* gradients, void* gradient_data, size_t,
                       void*) {
  return run(handle, __func__, probabilities, costs, gradients, gradient_data);
}

}  // extern "C"
