// Descriptors of the legacy API.
#pragma once
#include <cstdint>
#include <vector>

#include "cudnn/element_type.h"
#include "library_launch.h"

namespace phantora::cudnn {

// Whether products of `type` run in TF32 under a cudnnMathType_t: every one but CUDNN_FMA_MATH lets float32 do so.
inline bool uses_tf32(DataType type, int math) {
  constexpr int fma = 3;
  return type == DataType::f32 && math != fma;
}

struct Tensor {
  DataType type = DataType::f32;
  std::vector<int> dims;
  std::vector<int> strides;

  size_t bytes() const {
    int64_t last = 0;
    for (size_t i = 0; i < dims.size(); ++i) last += int64_t{dims[i] - 1} * strides[i];
    return dims.empty() || last < 0 ? 0 : bytes_of(type, last + 1);
  }
  shim::Written written(void* pointer) const { return {pointer, bytes()}; }
};

struct Filter {
  DataType type = DataType::f32;
  int format = 0;  // cudnnTensorFormat_t
  std::vector<int> dims;

  size_t bytes() const {
    int64_t elements = dims.empty() ? 0 : 1;
    for (const int dim : dims) elements *= dim;
    return bytes_of(type, elements);
  }
};

struct Dropout {
  float probability = 0;
  void* states = nullptr;
  size_t states_bytes = 0;
  unsigned long long seed = 0;
};

}  // namespace phantora::cudnn
