// cuBLASLt's descriptors: plain structs that fit the caller's opaque storage, with one field an attribute.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "data_type.h"

namespace phantora::cublaslt {

enum class Status : int { success = 0, not_initialized = 1, alloc_failed = 3, invalid_value = 7, not_supported = 15 };

// Where an attribute lies in its struct.
struct Field {
  int attribute;
  size_t offset;
  size_t size;
};

struct MatrixLayout {
  shim::DataType type = shim::DataType::r32f;
  int32_t order = 0;  // 0 column-major, 1 row-major, others are the tiled ones
  uint64_t rows = 0;
  uint64_t cols = 0;
  int64_t ld = 0;
  int32_t batch_count = 1;
  uint32_t batch_mode = 0;
  int64_t batch_stride = 0;
  int64_t plane_offset = 0;
};
static_assert(sizeof(MatrixLayout) <= 64);

struct MatmulDesc {
  int32_t compute_type = 0;
  int32_t scale_type = 0;
  int32_t pointer_mode = 0;
  int32_t transa = 0;
  int32_t transb = 0;
  int32_t transc = 0;
  int32_t fill_mode = 2;  // full
  uint32_t epilogue = 1;
  void* bias = nullptr;
  int64_t bias_batch_stride = 0;
  void* aux = nullptr;
  int64_t aux_ld = 0;
  int64_t aux_batch_stride = 0;
  int64_t alpha_batch_stride = 0;
  int32_t sm_count_target = 0;
  int32_t aux_type = -1;
  void* a_scale = nullptr;
  void* b_scale = nullptr;
  void* c_scale = nullptr;
  void* d_scale = nullptr;
  void* d_amax = nullptr;
  void* aux_scale = nullptr;
  void* aux_amax = nullptr;
  void* d_out_scale = nullptr;
  void* emulation = nullptr;
  int32_t bias_type = -1;
  int32_t a_scale_mode = 0;
  int32_t b_scale_mode = 0;
  int32_t c_scale_mode = 0;
  int32_t d_scale_mode = 0;
  int32_t aux_scale_mode = 0;
  int32_t d_out_scale_mode = 0;
  int8_t fast_accumulation = 0;
};
static_assert(sizeof(MatmulDesc) <= 256);

struct Preference {
  uint32_t search_mode = 0;
  uint32_t reduction_scheme_mask = 0xff;
  uint64_t max_workspace_bytes = 0;
  uint32_t min_alignment[4] = {256, 256, 256, 256};  // of A, B, C, D
  float max_waves = 0;
  uint64_t implementation_mask = ~uint64_t{0};
};
static_assert(sizeof(Preference) <= 64);

// The one algorithm that there is, with whatever configuration the caller sets.
struct Algorithm {
  int32_t id = 0;
  uint32_t tile = 0;
  int32_t split_k = 1;
  uint32_t reduction_scheme = 0;
  uint32_t cta_swizzling = 0;
  uint32_t custom_option = 0;
  uint32_t stages = 0;
  uint16_t inner_shape = 0;
  uint16_t cluster_shape = 0;
};
static_assert(sizeof(Algorithm) <= 64);

std::span<const Field> fields(const MatrixLayout*);
std::span<const Field> fields(const MatmulDesc*);
std::span<const Field> fields(const Preference*);
std::span<const Field> fields(const Algorithm*);

inline const Field* find_field(std::span<const Field> fields, int attribute) {
  for (const Field& field : fields) {
    if (field.attribute == attribute) return &field;
  }
  return nullptr;
}

template <typename Descriptor>
Status initialise(void* storage, size_t bytes, const Descriptor& value) {
  if (storage == nullptr) return Status::invalid_value;
  if (bytes < sizeof(Descriptor)) return Status::alloc_failed;
  std::memcpy(storage, &value, sizeof(Descriptor));
  return Status::success;
}

template <typename Descriptor>
Status create(Descriptor** out, const Descriptor& value) {
  if (out == nullptr) return Status::invalid_value;
  *out = new Descriptor(value);
  return Status::success;
}

template <typename Descriptor>
Status destroy(Descriptor* descriptor) {
  delete descriptor;
  return Status::success;
}

template <typename Descriptor>
Status set_attribute(Descriptor* descriptor, int attribute, const void* value, size_t bytes) {
  if (descriptor == nullptr || value == nullptr) return Status::invalid_value;
  const Field* field = find_field(fields(descriptor), attribute);
  if (field == nullptr || bytes != field->size) return Status::invalid_value;
  std::memcpy(reinterpret_cast<char*>(descriptor) + field->offset, value, field->size);
  return Status::success;
}

// With `bytes` 0 only tells the size.
template <typename Descriptor>
Status get_attribute(const Descriptor* descriptor, int attribute, void* value, size_t bytes, size_t* written) {
  if (descriptor == nullptr) return Status::invalid_value;
  const Field* field = find_field(fields(descriptor), attribute);
  if (field == nullptr || (bytes != 0 && (value == nullptr || bytes < field->size))) return Status::invalid_value;
  if (written != nullptr) *written = field->size;
  if (bytes != 0) std::memcpy(value, reinterpret_cast<const char*>(descriptor) + field->offset, field->size);
  return Status::success;
}

}  // namespace phantora::cublaslt
