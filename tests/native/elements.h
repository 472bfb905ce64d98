// Elements of NCCL's data types as doubles.
#pragma once
#include <cstdint>
#include <cstring>

#include "nccl/minifloat.h"
#include "nccl/reduction.h"
#include "nccl/types.h"

namespace phantora::nccl {

inline constexpr DataType all_types[] = {
    DataType::int8,    DataType::uint8,    DataType::int32,       DataType::uint32,
    DataType::int64,   DataType::uint64,   DataType::float16,     DataType::float32,
    DataType::float64, DataType::bfloat16, DataType::float8_e4m3, DataType::float8_e5m2,
};

template <class T, class Visible = T>
double load_as(const void* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return static_cast<double>(static_cast<Visible>(value));
}

inline double load(DataType type, const void* buffer, size_t index) {
  const char* p = static_cast<const char*>(buffer) + index * element_bytes(type);
  switch (type) {
    case DataType::int8:
      return load_as<int8_t>(p);
    case DataType::uint8:
      return load_as<uint8_t>(p);
    case DataType::int32:
      return load_as<int32_t>(p);
    case DataType::uint32:
      return load_as<uint32_t>(p);
    case DataType::int64:
      return load_as<int64_t>(p);
    case DataType::uint64:
      return load_as<uint64_t>(p);
    case DataType::float16:
      return load_as<Float16, float>(p);
    case DataType::float32:
      return load_as<float>(p);
    case DataType::float64:
      return load_as<double>(p);
    case DataType::bfloat16:
      return load_as<Bfloat16, float>(p);
    case DataType::float8_e4m3:
      return load_as<Float8E4M3, float>(p);
    case DataType::float8_e5m2:
      return load_as<Float8E5M2, float>(p);
  }
  return 0;
}

template <class T>
void store_as(void* p, T value) {
  std::memcpy(p, &value, sizeof value);
}

inline void store(DataType type, void* buffer, size_t index, double value) {
  char* p = static_cast<char*>(buffer) + index * element_bytes(type);
  const auto small = static_cast<float>(value);
  switch (type) {
    case DataType::int8:
      return store_as(p, static_cast<int8_t>(value));
    case DataType::uint8:
      return store_as(p, static_cast<uint8_t>(value));
    case DataType::int32:
      return store_as(p, static_cast<int32_t>(value));
    case DataType::uint32:
      return store_as(p, static_cast<uint32_t>(value));
    case DataType::int64:
      return store_as(p, static_cast<int64_t>(value));
    case DataType::uint64:
      return store_as(p, static_cast<uint64_t>(value));
    case DataType::float16:
      return store_as(p, Float16(small));
    case DataType::float32:
      return store_as(p, small);
    case DataType::float64:
      return store_as(p, value);
    case DataType::bfloat16:
      return store_as(p, Bfloat16(small));
    case DataType::float8_e4m3:
      return store_as(p, Float8E4M3(small));
    case DataType::float8_e5m2:
      return store_as(p, Float8E5M2(small));
  }
}

// The nearest number that an element can hold.
inline double nearest(DataType type, double value) {
  uint64_t element = 0;
  store(type, &element, 0, value);
  return load(type, &element, 0);
}

}  // namespace phantora::nccl
