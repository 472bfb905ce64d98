#include "nccl/reduction.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "nccl/minifloat.h"

namespace phantora::nccl {
namespace {

struct TypeFacts {
  std::string_view name;
  size_t bytes;
  bool floating_point;
};

constexpr std::array<TypeFacts, data_type_count> facts = {{
    {"int8", 1, false},
    {"uint8", 1, false},
    {"int32", 4, false},
    {"uint32", 4, false},
    {"int64", 8, false},
    {"uint64", 8, false},
    {"float16", 2, true},
    {"float32", 4, true},
    {"float64", 8, true},
    {"bfloat16", 2, true},
    {"float8_e4m3fn", 1, true},
    {"float8_e5m2", 1, true},
}};

const TypeFacts& facts_of(DataType type) { return facts.at(static_cast<size_t>(type)); }

// Calls visit(T{}) with the C++ type of a data type.
template <class Visit>
void with_type(DataType type, const Visit& visit) {
  switch (type) {
    case DataType::int8:
      return visit(int8_t{});
    case DataType::uint8:
      return visit(uint8_t{});
    case DataType::int32:
      return visit(int32_t{});
    case DataType::uint32:
      return visit(uint32_t{});
    case DataType::int64:
      return visit(int64_t{});
    case DataType::uint64:
      return visit(uint64_t{});
    case DataType::float16:
      return visit(Float16{});
    case DataType::float32:
      return visit(float{});
    case DataType::float64:
      return visit(double{});
    case DataType::bfloat16:
      return visit(Bfloat16{});
    case DataType::float8_e4m3:
      return visit(Float8E4M3{});
    case DataType::float8_e5m2:
      return visit(Float8E5M2{});
  }
}

// The type that arithmetic on T is done in: integers wrap, small floats go by way of float.
template <class T>
using Compute = typename std::conditional_t<
    std::is_integral_v<T>, std::type_identity<uint64_t>,
    std::conditional_t<std::is_floating_point_v<T>, std::type_identity<T>, std::type_identity<float>>>::type;

template <class T>
T add(T a, T b) {
  return T(Compute<T>(a) + Compute<T>(b));
}

template <class T>
T multiply(T a, T b) {
  return T(Compute<T>(a) * Compute<T>(b));
}

// A number wins against NaN, as with CUDA's fmaxf and __hmax.
template <class T>
T larger(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return a > b ? a : b;
  } else {
    return T(std::fmax(Compute<T>(a), Compute<T>(b)));
  }
}

template <class T>
T smaller(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return a < b ? a : b;
  } else {
    return T(std::fmin(Compute<T>(a), Compute<T>(b)));
  }
}

template <class T>
T load(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class T, class Step>
void for_each(void* values, size_t count, const Step& step) {
  auto* bytes = static_cast<char*>(values);
  for (size_t i = 0; i < count; ++i) {
    const T result = step(load<T>(bytes + i * sizeof(T)), i);
    std::memcpy(bytes + i * sizeof(T), &result, sizeof(T));
  }
}

template <class T, T (*combine)(T, T)>
void fold(void* values, const void* others, size_t count) {
  const auto* bytes = static_cast<const char*>(others);
  for_each<T>(values, count, [bytes](T value, size_t i) { return combine(value, load<T>(bytes + i * sizeof(T))); });
}

}  // namespace

size_t element_bytes(DataType type) { return facts_of(type).bytes; }
std::string_view name(DataType type) { return facts_of(type).name; }
bool is_floating_point(DataType type) { return facts_of(type).floating_point; }

std::string_view name(RedOp op) {
  switch (op) {
    case RedOp::sum:
      return "sum";
    case RedOp::product:
      return "prod";
    case RedOp::maximum:
      return "max";
    case RedOp::minimum:
      return "min";
    case RedOp::average:
      return "avg";
    case RedOp::custom:
      break;
  }
  return "premul_sum";
}

void accumulate(DataType type, RedOp op, void* values, const void* others, size_t count) {
  with_type(type, [=]<class T>(T) {
    switch (op) {
      case RedOp::product:
        return fold<T, multiply<T>>(values, others, count);
      case RedOp::maximum:
        return fold<T, larger<T>>(values, others, count);
      case RedOp::minimum:
        return fold<T, smaller<T>>(values, others, count);
      default:
        return fold<T, add<T>>(values, others, count);
    }
  });
}

void scale(DataType type, void* values, const void* scalar, size_t count) {
  with_type(type, [=]<class T>(T) {
    const T factor = load<T>(static_cast<const char*>(scalar));
    for_each<T>(values, count, [factor](T value, size_t) { return multiply<T>(value, factor); });
  });
}

void store_reciprocal(DataType type, int n, void* scalar) {
  with_type(type, [=]<class T>(T) {
    if constexpr (!std::is_integral_v<T>) {
      const T reciprocal = T(Compute<T>(1.0 / n));
      std::memcpy(scalar, &reciprocal, sizeof reciprocal);
    }
  });
}

void divide(DataType type, void* values, int n, size_t count) {
  with_type(type, [=]<class T>(T) {
    if constexpr (std::is_integral_v<T>) {
      using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
      for_each<T>(values, count, [n](T value, size_t) { return T(Wide(value) / Wide(n)); });
    }
  });
}

}  // namespace phantora::nccl
