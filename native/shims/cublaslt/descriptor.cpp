#include "cublaslt/descriptor.h"

namespace phantora::cublaslt {

#define FIELD(number, type, member) \
  Field { number, offsetof(type, member), sizeof(type::member) }

std::span<const Field> fields(const MatrixLayout*) {
  static constexpr Field table[] = {
      FIELD(0, MatrixLayout, type),         FIELD(1, MatrixLayout, order),        FIELD(2, MatrixLayout, rows),
      FIELD(3, MatrixLayout, cols),         FIELD(4, MatrixLayout, ld),           FIELD(5, MatrixLayout, batch_count),
      FIELD(6, MatrixLayout, batch_stride), FIELD(7, MatrixLayout, plane_offset), FIELD(8, MatrixLayout, batch_mode),
  };
  return table;
}

std::span<const Field> fields(const MatmulDesc*) {
  static constexpr Field table[] = {
      FIELD(0, MatmulDesc, compute_type),
      FIELD(1, MatmulDesc, scale_type),
      FIELD(2, MatmulDesc, pointer_mode),
      FIELD(3, MatmulDesc, transa),
      FIELD(4, MatmulDesc, transb),
      FIELD(5, MatmulDesc, transc),
      FIELD(6, MatmulDesc, fill_mode),
      FIELD(7, MatmulDesc, epilogue),
      FIELD(8, MatmulDesc, bias),
      FIELD(10, MatmulDesc, bias_batch_stride),
      FIELD(11, MatmulDesc, aux),
      FIELD(12, MatmulDesc, aux_ld),
      FIELD(13, MatmulDesc, aux_batch_stride),
      FIELD(14, MatmulDesc, alpha_batch_stride),
      FIELD(15, MatmulDesc, sm_count_target),
      FIELD(17, MatmulDesc, a_scale),
      FIELD(18, MatmulDesc, b_scale),
      FIELD(19, MatmulDesc, c_scale),
      FIELD(20, MatmulDesc, d_scale),
      FIELD(21, MatmulDesc, d_amax),
      FIELD(22, MatmulDesc, aux_type),
      FIELD(23, MatmulDesc, aux_scale),
      FIELD(24, MatmulDesc, aux_amax),
      FIELD(25, MatmulDesc, fast_accumulation),
      FIELD(26, MatmulDesc, bias_type),
      FIELD(31, MatmulDesc, a_scale_mode),
      FIELD(32, MatmulDesc, b_scale_mode),
      FIELD(33, MatmulDesc, c_scale_mode),
      FIELD(34, MatmulDesc, d_scale_mode),
      FIELD(35, MatmulDesc, aux_scale_mode),
      FIELD(36, MatmulDesc, d_out_scale),
      FIELD(37, MatmulDesc, d_out_scale_mode),
      FIELD(38, MatmulDesc, emulation),
  };
  return table;
}

std::span<const Field> fields(const Preference*) {
  static constexpr Field table[] = {
      FIELD(0, Preference, search_mode),
      FIELD(1, Preference, max_workspace_bytes),
      FIELD(3, Preference, reduction_scheme_mask),
      Field{5, offsetof(Preference, min_alignment), 4},
      Field{6, offsetof(Preference, min_alignment) + 4, 4},
      Field{7, offsetof(Preference, min_alignment) + 8, 4},
      Field{8, offsetof(Preference, min_alignment) + 12, 4},
      FIELD(9, Preference, max_waves),
      FIELD(12, Preference, implementation_mask),
  };
  return table;
}

std::span<const Field> fields(const Algorithm*) {
  static constexpr Field table[] = {
      FIELD(0, Algorithm, id),
      FIELD(1, Algorithm, tile),
      FIELD(2, Algorithm, split_k),
      FIELD(3, Algorithm, reduction_scheme),
      FIELD(4, Algorithm, cta_swizzling),
      FIELD(5, Algorithm, custom_option),
      FIELD(6, Algorithm, stages),
      FIELD(7, Algorithm, inner_shape),
      FIELD(8, Algorithm, cluster_shape),
  };
  return table;
}

}  // namespace phantora::cublaslt

using phantora::cublaslt::MatmulDesc;
using phantora::cublaslt::MatrixLayout;
using phantora::cublaslt::Preference;
using phantora::cublaslt::Status;
using phantora::shim::DataType;

namespace {

MatrixLayout layout(DataType type, uint64_t rows, uint64_t cols, int64_t ld) {
  MatrixLayout made;
  made.type = type;
  made.rows = rows;
  made.cols = cols;
  made.ld = ld;
  return made;
}

MatmulDesc matmul(int compute_type, int scale_type) {
  MatmulDesc made;
  made.compute_type = compute_type;
  made.scale_type = scale_type;
  return made;
}

}  // namespace

extern "C" {

Status cublasLtMatrixLayoutInit_internal(void* storage, size_t bytes, DataType type, uint64_t rows, uint64_t cols,
                                         int64_t ld) {
  return phantora::cublaslt::initialise(storage, bytes, layout(type, rows, cols, ld));
}
Status cublasLtMatrixLayoutCreate(MatrixLayout** out, DataType type, uint64_t rows, uint64_t cols, int64_t ld) {
  return phantora::cublaslt::create(out, layout(type, rows, cols, ld));
}
Status cublasLtMatrixLayoutDestroy(MatrixLayout* layout) { return phantora::cublaslt::destroy(layout); }
Status cublasLtMatrixLayoutSetAttribute(MatrixLayout* layout, int attribute, const void* value, size_t bytes) {
  return phantora::cublaslt::set_attribute(layout, attribute, value, bytes);
}
Status cublasLtMatrixLayoutGetAttribute(const MatrixLayout* layout, int attribute, void* value, size_t bytes,
                                        size_t* written) {
  return phantora::cublaslt::get_attribute(layout, attribute, value, bytes, written);
}

Status cublasLtMatmulDescInit_internal(void* storage, size_t bytes, int compute_type, int scale_type) {
  return phantora::cublaslt::initialise(storage, bytes, matmul(compute_type, scale_type));
}
Status cublasLtMatmulDescCreate(MatmulDesc** out, int compute_type, int scale_type) {
  return phantora::cublaslt::create(out, matmul(compute_type, scale_type));
}
Status cublasLtMatmulDescDestroy(MatmulDesc* desc) { return phantora::cublaslt::destroy(desc); }
Status cublasLtMatmulDescSetAttribute(MatmulDesc* desc, int attribute, const void* value, size_t bytes) {
  return phantora::cublaslt::set_attribute(desc, attribute, value, bytes);
}
Status cublasLtMatmulDescGetAttribute(const MatmulDesc* desc, int attribute, void* value, size_t bytes,
                                      size_t* written) {
  return phantora::cublaslt::get_attribute(desc, attribute, value, bytes, written);
}

Status cublasLtMatmulPreferenceInit_internal(void* storage, size_t bytes) {
  return phantora::cublaslt::initialise(storage, bytes, Preference{});
}
Status cublasLtMatmulPreferenceCreate(Preference** out) { return phantora::cublaslt::create(out, Preference{}); }
Status cublasLtMatmulPreferenceDestroy(Preference* preference) { return phantora::cublaslt::destroy(preference); }
Status cublasLtMatmulPreferenceSetAttribute(Preference* preference, int attribute, const void* value, size_t bytes) {
  return phantora::cublaslt::set_attribute(preference, attribute, value, bytes);
}
Status cublasLtMatmulPreferenceGetAttribute(const Preference* preference, int attribute, void* value, size_t bytes,
                                            size_t* written) {
  return phantora::cublaslt::get_attribute(preference, attribute, value, bytes, written);
}

}  // extern "C"
