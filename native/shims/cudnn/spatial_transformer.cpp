// Affine grids and bilinear sampling (affine_grid, grid_sample).
#include <vector>

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

struct SpatialTransformer {
  DataType type = DataType::f32;
  std::vector<int> dims;  // of the output: N, C, H, W

  Written grid(void* pointer) const {  // N, H, W, 2
    return {pointer, dims.size() == 4 ? bytes_of(type, 2ull * dims[0] * dims[2] * dims[3]) : 0};
  }
  Written theta(void* pointer) const {  // N, 2, 3
    return {pointer, dims.size() == 4 ? bytes_of(type, 6ull * dims[0]) : 0};
  }
};

}  // namespace

extern "C" {

Status cudnnCreateSpatialTransformerDescriptor(SpatialTransformer** out) {
  if (out == nullptr) return Status::null_pointer;
  *out = new SpatialTransformer;
  return Status::success;
}
Status cudnnDestroySpatialTransformerDescriptor(SpatialTransformer* transformer) {
  delete transformer;
  return Status::success;
}
Status cudnnSetSpatialTransformerNdDescriptor(SpatialTransformer* transformer, int, DataType type, int count,
                                              const int dims[]) {
  if (transformer == nullptr || dims == nullptr) return Status::null_pointer;
  if (count != 4) return Status::not_supported;
  *transformer = {type, {dims, dims + count}};
  return Status::success;
}

Status cudnnSpatialTfGridGeneratorForward(Handle* handle, const SpatialTransformer* transformer, const void*,
                                          void* grid) {
  if (transformer == nullptr) return Status::null_pointer;
  return launch_named(handle, __func__, {transformer->grid(grid)});
}
Status cudnnSpatialTfGridGeneratorBackward(Handle* handle, const SpatialTransformer* transformer, const void*,
                                           void* dtheta) {
  if (transformer == nullptr) return Status::null_pointer;
  return launch_named(handle, __func__, {transformer->theta(dtheta)});
}
Status cudnnSpatialTfSamplerForward(Handle* handle, const SpatialTransformer* transformer, const void*, const Tensor*,
                                    const void*, const void*, const void*, const Tensor* y_desc, void* y) {
  if (transformer == nullptr || y_desc == nullptr) return Status::null_pointer;
  return launch_named(handle, __func__, {y_desc->written(y)});
}
Status cudnnSpatialTfSamplerBackward(Handle* handle, const SpatialTransformer* transformer, const void*, const Tensor*,
                                     const void*, const void*, const Tensor* dx_desc, void* dx, const void*,
                                     const Tensor*, const void*, const void*, const void*, void* dgrid) {
  if (transformer == nullptr || dx_desc == nullptr) return Status::null_pointer;
  return launch_named(handle, __func__, {dx_desc->written(dx), transformer->grid(dgrid)});
}

}  // extern "C"
