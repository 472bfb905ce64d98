// Names of dtypes as torch prints them, without "torch.".
#pragma once
#include <c10/core/ScalarType.h>

#include <string_view>

namespace phantora::aten {

inline std::string_view dtype_name(at::ScalarType type) {
  switch (type) {
    case at::ScalarType::Byte:
      return "uint8";
    case at::ScalarType::Char:
      return "int8";
    case at::ScalarType::Short:
      return "int16";
    case at::ScalarType::Int:
      return "int32";
    case at::ScalarType::Long:
      return "int64";
    case at::ScalarType::UInt16:
      return "uint16";
    case at::ScalarType::UInt32:
      return "uint32";
    case at::ScalarType::UInt64:
      return "uint64";
    case at::ScalarType::Half:
      return "float16";
    case at::ScalarType::Float:
      return "float32";
    case at::ScalarType::Double:
      return "float64";
    case at::ScalarType::BFloat16:
      return "bfloat16";
    case at::ScalarType::ComplexHalf:
      return "complex32";
    case at::ScalarType::ComplexFloat:
      return "complex64";
    case at::ScalarType::ComplexDouble:
      return "complex128";
    case at::ScalarType::Bool:
      return "bool";
    case at::ScalarType::Float8_e5m2:
      return "float8_e5m2";
    case at::ScalarType::Float8_e4m3fn:
      return "float8_e4m3fn";
    case at::ScalarType::Float8_e5m2fnuz:
      return "float8_e5m2fnuz";
    case at::ScalarType::Float8_e4m3fnuz:
      return "float8_e4m3fnuz";
    case at::ScalarType::Float8_e8m0fnu:
      return "float8_e8m0fnu";
    case at::ScalarType::Float4_e2m1fn_x2:
      return "float4_e2m1fn_x2";
    default:
      return c10::toString(type);
  }
}

}  // namespace phantora::aten
