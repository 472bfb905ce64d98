// The matrix product with its epilogue: one launch.
#include <algorithm>

#include "cublaslt/descriptor.h"
#include "product.h"

using phantora::cublaslt::MatmulDesc;
using phantora::cublaslt::MatrixLayout;
using phantora::cublaslt::Status;
using phantora::shim::bytes_of;
using phantora::shim::DataType;
using phantora::shim::Operation;
using phantora::shim::Product;
using phantora::shim::Written;

namespace {

constexpr int compute_f32_fast_tf32 = 77;
// Bits of cublasLtEpilogue_t.
constexpr uint32_t epilogue_relu = 2;
constexpr uint32_t epilogue_backward = 8 | 64;  // dReLU, dGELU
constexpr uint32_t epilogue_aux = 128;
constexpr uint32_t epilogue_bias_gradients = 16 | 256 | 512;  // with dReLU and dGELU, of A's rows, of B's columns

struct Handle {};

size_t extent(const MatrixLayout& layout) {
  const bool by_rows = layout.order == 1;
  const int64_t lines = by_rows ? layout.rows : layout.cols, width = by_rows ? layout.cols : layout.rows;
  if (lines <= 0 || width <= 0 || layout.batch_count <= 0) return 0;
  return bytes_of(layout.type, layout.ld * (lines - 1) + width + layout.batch_stride * (layout.batch_count - 1));
}

// The forward epilogues leave GELU's input, or ReLU's sign bits; the backward ones read them.
Written auxiliary(const MatmulDesc& desc, const MatrixLayout& d) {
  if ((desc.epilogue & epilogue_aux) == 0 || (desc.epilogue & epilogue_backward) != 0) return {};
  const uint64_t elements = static_cast<uint64_t>(desc.aux_ld) * d.cols;
  if (desc.epilogue & epilogue_relu) return {desc.aux, (elements + 7) / 8};
  const DataType type = desc.aux_type < 0 ? d.type : static_cast<DataType>(desc.aux_type);
  return {desc.aux, bytes_of(type, elements)};
}

Written bias_gradient(const MatmulDesc& desc, const MatrixLayout& d) {
  if ((desc.epilogue & epilogue_bias_gradients) == 0 || desc.bias == nullptr) return {};
  const DataType type = desc.bias_type < 0 ? d.type : static_cast<DataType>(desc.bias_type);
  return {desc.bias, bytes_of(type, std::max(d.rows, d.cols))};
}

}  // namespace

extern "C" {

Status cublasLtCreate(Handle** out) {
  if (out == nullptr) return Status::invalid_value;
  *out = new Handle;
  return Status::success;
}
Status cublasLtDestroy(Handle* handle) {
  if (handle == nullptr) return Status::not_initialized;
  delete handle;
  return Status::success;
}

Status cublasLtMatmul(void* handle, const MatmulDesc* desc, const void*, const void*, const MatrixLayout* a,
                      const void*, const MatrixLayout* b, const void*, const void*, const MatrixLayout*, void* d,
                      const MatrixLayout* layout, const void*, void*, size_t, void* stream) {
  if (handle == nullptr) return Status::not_initialized;
  if (!desc || !a || !b || !layout) return Status::invalid_value;
  const bool tf32 = a->type == DataType::r32f && desc->compute_type == compute_f32_fast_tf32;
  const Product product{
      .m = static_cast<int64_t>(layout->rows),
      .n = static_cast<int64_t>(layout->cols),
      .k = static_cast<int64_t>(desc->transa ? a->rows : a->cols),
      .batch = std::max(layout->batch_count, 1),
      .transa = static_cast<Operation>(desc->transa),
      .transb = static_cast<Operation>(desc->transb),
      .type_a = a->type,
      .type_d = layout->type,
      .kind = tf32 ? Product::Kind::tf32 : Product::Kind::exact,
  };
  phantora::shim::launch_product(stream, "cublasLtMatmul", product,
                                 {{d, extent(*layout)}, auxiliary(*desc, *layout), bias_gradient(*desc, *layout)});
  return Status::success;
}

}  // extern "C"
