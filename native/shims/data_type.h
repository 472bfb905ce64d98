// cudaDataType_t: CUDA's element types, by the numbers that the math libraries take.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "phantora/recorder.h"

namespace phantora::shim {

enum class DataType : int32_t {
  r32f = 0,
  r64f = 1,
  r16f = 2,
  r8i = 3,
  c32f = 4,
  c64f = 5,
  c16f = 6,
  r8u = 8,
  r32i = 10,
  r32u = 12,
  r16bf = 14,
  r16i = 20,
  r16u = 22,
  r64i = 24,
  r64u = 26,
  r8f_e4m3 = 28,
  r8f_e5m2 = 29,
  r8f_ue8m0 = 30,
  r4f_e2m1 = 33,
};

struct TypeInfo {
  std::string_view name;  // as torch prints it without "torch."
  int bits;
};

// Ends the rank for a type that PyTorch has no name for: no cost engine could tell what it costs.
inline TypeInfo type_info(DataType type) {
  switch (type) {
    case DataType::r32f:
      return {"float32", 32};
    case DataType::r64f:
      return {"float64", 64};
    case DataType::r16f:
      return {"float16", 16};
    case DataType::r16bf:
      return {"bfloat16", 16};
    case DataType::c16f:
      return {"complex32", 32};
    case DataType::c32f:
      return {"complex64", 64};
    case DataType::c64f:
      return {"complex128", 128};
    case DataType::r8i:
      return {"int8", 8};
    case DataType::r8u:
      return {"uint8", 8};
    case DataType::r16i:
      return {"int16", 16};
    case DataType::r16u:
      return {"uint16", 16};
    case DataType::r32i:
      return {"int32", 32};
    case DataType::r32u:
      return {"uint32", 32};
    case DataType::r64i:
      return {"int64", 64};
    case DataType::r64u:
      return {"uint64", 64};
    case DataType::r8f_e4m3:
      return {"float8_e4m3fn", 8};
    case DataType::r8f_e5m2:
      return {"float8_e5m2", 8};
    case DataType::r8f_ue8m0:
      return {"float8_e8m0fnu", 8};
    case DataType::r4f_e2m1:
      return {"float4_e2m1fn_x2", 4};
  }
  fail("a library call with CUDA element type " + std::to_string(static_cast<int>(type)) + ", which is not emulated",
       "use one of the element types that PyTorch has");
}

inline uint64_t bytes_of(DataType type, uint64_t elements) { return (elements * type_info(type).bits + 7) / 8; }

}  // namespace phantora::shim
