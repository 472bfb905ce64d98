// Convolutions of the legacy API: one algorithm each way, without workspace. (PyTorch takes the backend API first.)
#include "cudnn/descriptors.h"
#include "cudnn/handle.h"

using phantora::cudnn::DataType;
using phantora::cudnn::Filter;
using phantora::cudnn::Handle;
using phantora::cudnn::launch_named;
using phantora::cudnn::Status;
using phantora::cudnn::Tensor;
using phantora::cudnn::uses_tf32;

namespace {

struct Convolution {
  int math = 0;
  int groups = 1;
  std::vector<int> padding, strides, dilations;
  int mode = 0;
  DataType compute = DataType::f32;
};

// cudnnConvolution{Fwd,BwdData,BwdFilter}AlgoPerf_t, which are alike.
struct Performance {
  int algorithm;
  Status status;
  float milliseconds;
  size_t workspace_bytes;
  int determinism;
  int math;
  int reserved[3];
};
static_assert(sizeof(Performance) == 48);

constexpr int implicit_precomp_gemm = 1;  // the same number names algorithm 1 of both backward passes
constexpr int deterministic = 1;

Status the_algorithm(const Convolution* convolution, int requested, int* returned, Performance* results) {
  if (convolution == nullptr || returned == nullptr || results == nullptr) return Status::null_pointer;
  if (requested < 1) return Status::bad_param;
  results[0] = {implicit_precomp_gemm, Status::success, -1.0f, 0, deterministic, convolution->math, {}};
  *returned = 1;
  return Status::success;
}

Status convolve(const Handle* handle, const char* function, const Convolution* convolution, DataType type,
                phantora::shim::Written result) {
  if (convolution == nullptr) return Status::null_pointer;
  return launch_named(handle, function, {result}, uses_tf32(type, convolution->math));
}

Status no_workspace(size_t* bytes) {
  if (bytes == nullptr) return Status::null_pointer;
  *bytes = 0;
  return Status::success;
}

}  // namespace

extern "C" {

Status cudnnCreateConvolutionDescriptor(Convolution** out) {
  if (out == nullptr) return Status::null_pointer;
  *out = new Convolution;
  return Status::success;
}
Status cudnnDestroyConvolutionDescriptor(Convolution* convolution) {
  delete convolution;
  return Status::success;
}
Status cudnnSetConvolutionMathType(Convolution* convolution, int math) {
  if (convolution == nullptr) return Status::null_pointer;
  convolution->math = math;
  return Status::success;
}
Status cudnnSetConvolutionGroupCount(Convolution* convolution, int groups) {
  if (convolution == nullptr) return Status::null_pointer;
  convolution->groups = groups;
  return Status::success;
}
Status cudnnSetConvolutionNdDescriptor(Convolution* convolution, int count, const int padding[], const int strides[],
                                       const int dilations[], int mode, DataType compute) {
  if (convolution == nullptr || padding == nullptr || strides == nullptr || dilations == nullptr) {
    return Status::null_pointer;
  }
  if (count < 0 || count > 6) return Status::not_supported;
  convolution->padding.assign(padding, padding + count);
  convolution->strides.assign(strides, strides + count);
  convolution->dilations.assign(dilations, dilations + count);
  convolution->mode = mode;
  convolution->compute = compute;
  return Status::success;
}

Status cudnnGetConvolutionForwardAlgorithm_v7(Handle*, const Tensor*, const Filter*, const Convolution* convolution,
                                              const Tensor*, int requested, int* returned, Performance* results) {
  return the_algorithm(convolution, requested, returned, results);
}
Status cudnnGetConvolutionBackwardDataAlgorithm_v7(Handle*, const Filter*, const Tensor*,
                                                   const Convolution* convolution, const Tensor*, int requested,
                                                   int* returned, Performance* results) {
  return the_algorithm(convolution, requested, returned, results);
}
Status cudnnGetConvolutionBackwardFilterAlgorithm_v7(Handle*, const Tensor*, const Tensor*,
                                                     const Convolution* convolution, const Filter*, int requested,
                                                     int* returned, Performance* results) {
  return the_algorithm(convolution, requested, returned, results);
}

Status cudnnFindConvolutionForwardAlgorithmEx(Handle*, const Tensor*, const void*, const Filter*, const void*,
                                              const Convolution* convolution, const Tensor*, void*, int requested,
                                              int* returned, Performance* results, void*, size_t) {
  return the_algorithm(convolution, requested, returned, results);
}
Status cudnnFindConvolutionBackwardDataAlgorithmEx(Handle*, const Filter*, const void*, const Tensor*, const void*,
                                                   const Convolution* convolution, const Tensor*, void*, int requested,
                                                   int* returned, Performance* results, void*, size_t) {
  return the_algorithm(convolution, requested, returned, results);
}
Status cudnnFindConvolutionBackwardFilterAlgorithmEx(Handle*, const Tensor*, const void*, const Tensor*, const void*,
                                                     const Convolution* convolution, const Filter*, void*,
                                                     int requested, int* returned, Performance* results, void*,
                                                     size_t) {
  return the_algorithm(convolution, requested, returned, results);
}

Status cudnnGetConvolutionForwardWorkspaceSize(Handle*, const Tensor*, const Filter*, const Convolution*, const Tensor*,
                                               int, size_t* bytes) {
  return no_workspace(bytes);
}
Status cudnnGetConvolutionBackwardDataWorkspaceSize(Handle*, const Filter*, const Tensor*, const Convolution*,
                                                    const Tensor*, int, size_t* bytes) {
  return no_workspace(bytes);
}
Status cudnnGetConvolutionBackwardFilterWorkspaceSize(Handle*, const Tensor*, const Tensor*, const Convolution*,
                                                      const Filter*, int, size_t* bytes) {
  return no_workspace(bytes);
}

Status cudnnConvolutionForward(Handle* handle, const void*, const Tensor*, const void*, const Filter*, const void*,
                               const Convolution* convolution, int, void*, size_t, const void*, const Tensor* y_desc,
                               void* y) {
  if (y_desc == nullptr) return Status::null_pointer;
  return convolve(handle, __func__, convolution, y_desc->type, y_desc->written(y));
}
Status cudnnConvolutionBiasActivationForward(Handle* handle, const void*, const Tensor*, const void*, const Filter*,
                                             const void*, const Convolution* convolution, int, void*, size_t,
                                             const void*, const Tensor*, const void*, const Tensor*, const void*,
                                             const void*, const Tensor* y_desc, void* y) {
  if (y_desc == nullptr) return Status::null_pointer;
  return convolve(handle, __func__, convolution, y_desc->type, y_desc->written(y));
}
Status cudnnConvolutionBackwardData(Handle* handle, const void*, const Filter*, const void*, const Tensor*, const void*,
                                    const Convolution* convolution, int, void*, size_t, const void*,
                                    const Tensor* dx_desc, void* dx) {
  if (dx_desc == nullptr) return Status::null_pointer;
  return convolve(handle, __func__, convolution, dx_desc->type, dx_desc->written(dx));
}
Status cudnnConvolutionBackwardFilter(Handle* handle, const void*, const Tensor*, const void*, const Tensor*,
                                      const void*, const Convolution* convolution, int, void*, size_t, const void*,
                                      const Filter* dw_desc, void* dw) {
  if (dw_desc == nullptr) return Status::null_pointer;
  return convolve(handle, __func__, convolution, dw_desc->type, {dw, dw_desc->bytes()});
}

}  // extern "C"
