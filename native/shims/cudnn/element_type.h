// cudnnDataType_t.
#pragma once
#include <cstdint>
#include <string>

#include "phantora/recorder.h"

namespace phantora::cudnn {

enum class DataType : int {
  f32 = 0,
  f64 = 1,
  f16 = 2,
  i8 = 3,
  i32 = 4,
  i8x4 = 5,
  u8 = 6,
  u8x4 = 7,
  i8x32 = 8,
  bf16 = 9,
  i64 = 10,
  boolean = 11,
  f8_e4m3 = 12,
  f8_e5m2 = 13,
  f32_for_fp8 = 14,
  f8_e8m0 = 15,
  f4_e2m1 = 16,
  i4 = 17,
  u4 = 18,
  u32 = 19,
  c32 = 20,
  c64 = 21,
};

inline int bits(DataType type) {
  switch (type) {
    case DataType::f4_e2m1:
    case DataType::i4:
    case DataType::u4:
      return 4;
    case DataType::i8:
    case DataType::u8:
    case DataType::boolean:
    case DataType::f8_e4m3:
    case DataType::f8_e5m2:
    case DataType::f8_e8m0:
      return 8;
    case DataType::f16:
    case DataType::bf16:
      return 16;
    case DataType::f32:
    case DataType::i32:
    case DataType::f32_for_fp8:
    case DataType::u32:
    case DataType::i8x4:
    case DataType::u8x4:
      return 32;
    case DataType::f64:
    case DataType::i64:
    case DataType::c32:
      return 64;
    case DataType::c64:
      return 128;
    case DataType::i8x32:
      return 256;
  }
  fail("cuDNN data type " + std::to_string(static_cast<int>(type)) + " is not emulated",
       "the list of types stands in native/shims/cudnn/element_type.h");
}

inline uint64_t bytes_of(DataType type, uint64_t elements) { return (elements * bits(type) + 7) / 8; }

}  // namespace phantora::cudnn
