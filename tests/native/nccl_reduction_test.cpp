// Arithmetic of NCCL's reductions: every data type, operation, and the rounding of small floating-point numbers.
#include <cmath>
#include <limits>
#include <vector>

#include "check.h"
#include "elements.h"
#include "nccl/reduction.h"

namespace phantora::nccl {
namespace {

template <class Small>
float rounded(float value) {
  return float(Small(value));
}

// Each code of a minifloat decodes to a number that encodes to the same code.
template <class Small, class Bits>
void check_round_trip() {
  for (unsigned code = 0; code <= std::numeric_limits<Bits>::max(); ++code) {
    Small small;
    small.bits = static_cast<Bits>(code);
    const float value = float(small);
    if (std::isnan(value)) {
      CHECK(std::isnan(rounded<Small>(value)));
    } else if (!std::isinf(value) || sizeof(Bits) == 2) {
      CHECK_EQUAL(Small(value).bits, small.bits);
    }
  }
}

void check_minifloats() {
  check_round_trip<Float16, uint16_t>();
  check_round_trip<Bfloat16, uint16_t>();
  check_round_trip<Float8E4M3, uint8_t>();
  check_round_trip<Float8E5M2, uint8_t>();

  CHECK_EQUAL(Float16(1.0f).bits, 0x3c00);
  CHECK_EQUAL(Float16(-2.0f).bits, 0xc000);
  CHECK_EQUAL(Float16(65504.0f).bits, 0x7bff);
  CHECK_EQUAL(Float16(65519.0f).bits, 0x7bff);  // below the middle to the next power
  CHECK_EQUAL(Float16(65520.0f).bits, 0x7c00);
  CHECK_EQUAL(Float16(std::ldexp(1.0f, -24)).bits, 1);
  CHECK_EQUAL(Float16(std::ldexp(1.0f, -25)).bits, 0);  // tie to even
  CHECK_EQUAL(Float16(std::ldexp(3.0f, -26)).bits, 1);
  CHECK_EQUAL(rounded<Float16>(2049.0f), 2048.0f);
  CHECK_EQUAL(rounded<Float16>(2051.0f), 2052.0f);
  CHECK_EQUAL(Bfloat16(1.0f).bits, 0x3f80);
  CHECK_EQUAL(rounded<Bfloat16>(257.0f), 256.0f);
  CHECK_EQUAL(rounded<Bfloat16>(259.0f), 260.0f);
  CHECK(std::isinf(rounded<Bfloat16>(std::numeric_limits<float>::max())));
  CHECK_EQUAL(Float8E4M3(1.0f).bits, 0x38);
  CHECK_EQUAL(rounded<Float8E4M3>(448.0f), 448.0f);
  CHECK_EQUAL(rounded<Float8E4M3>(1e9f), 448.0f);
  CHECK_EQUAL(rounded<Float8E4M3>(17.0f), 16.0f);
  CHECK_EQUAL(rounded<Float8E4M3>(19.0f), 20.0f);
  CHECK_EQUAL(Float8E5M2(1.0f).bits, 0x3c);
  CHECK_EQUAL(rounded<Float8E5M2>(1e9f), 57344.0f);
  CHECK(std::isnan(rounded<Float8E4M3>(std::nanf(""))));
  CHECK(std::signbit(rounded<Float8E5M2>(-0.0f)));
}

std::vector<char> filled(DataType type, const std::vector<double>& values) {
  std::vector<char> buffer(values.size() * element_bytes(type));
  for (size_t i = 0; i < values.size(); ++i) store(type, buffer.data(), i, values[i]);
  return buffer;
}

void check_accumulate(DataType type, RedOp op, const std::vector<double>& expected) {
  std::vector<char> values = filled(type, {1, 2, 3, 5});
  const std::vector<char> others = filled(type, {4, 2, 1, 3});
  accumulate(type, op, values.data(), others.data(), 4);
  for (size_t i = 0; i < 4; ++i) CHECK_EQUAL(load(type, values.data(), i), expected[i]);
}

void check_operations() {
  for (const DataType type : all_types) {
    check_accumulate(type, RedOp::sum, {5, 4, 4, 8});
    check_accumulate(type, RedOp::average, {5, 4, 4, 8});
    check_accumulate(type, RedOp::custom, {5, 4, 4, 8});
    check_accumulate(type, RedOp::product, {4, 4, 3, type == DataType::float8_e5m2 ? 16.0 : 15.0});
    check_accumulate(type, RedOp::maximum, {4, 2, 3, 5});
    check_accumulate(type, RedOp::minimum, {1, 2, 1, 3});

    std::vector<char> values = filled(type, {1, 2, 3, 4});
    const std::vector<char> two = filled(type, {2});
    scale(type, values.data(), two.data(), 4);
    for (size_t i = 0; i < 4; ++i) CHECK_EQUAL(load(type, values.data(), i), 2.0 * static_cast<double>(i + 1));
  }
}

void check_integers() {
  std::vector<char> small = filled(DataType::int8, {127, -128, -7, 7});
  const std::vector<char> ones = filled(DataType::int8, {1, -1, 0, 0});
  accumulate(DataType::int8, RedOp::sum, small.data(), ones.data(), 4);
  CHECK_EQUAL(load(DataType::int8, small.data(), 0), -128);  // wraps
  CHECK_EQUAL(load(DataType::int8, small.data(), 1), 127);
  divide(DataType::int8, small.data(), 2, 4);
  CHECK_EQUAL(load(DataType::int8, small.data(), 2), -3);  // towards zero
  CHECK_EQUAL(load(DataType::int8, small.data(), 3), 3);
  divide(DataType::int8, small.data(), 200, 4);
  CHECK_EQUAL(load(DataType::int8, small.data(), 3), 0);

  uint64_t large = UINT64_MAX;
  divide(DataType::uint64, &large, 3, 1);
  CHECK(large == UINT64_MAX / 3);
  int64_t product = int64_t{1} << 62;
  const int64_t four = 4;
  accumulate(DataType::int64, RedOp::product, &product, &four, 1);
  CHECK(product == 0);
  int32_t lesser = -5;
  const int32_t greater = 3;
  accumulate(DataType::int32, RedOp::maximum, &lesser, &greater, 1);
  CHECK_EQUAL(lesser, 3);
}

void check_averages() {
  for (const DataType type : all_types) {
    if (!is_floating_point(type)) continue;
    uint64_t quarter = 0;
    store_reciprocal(type, 4, &quarter);
    CHECK_EQUAL(load(type, &quarter, 0), 0.25);
    std::vector<char> values = filled(type, {8, 4});
    divide(type, values.data(), 2, 2);  // floating point is scaled before the sum instead
    CHECK_EQUAL(load(type, values.data(), 0), 8);
  }
}

void check_not_a_number() {
  float value = std::nanf("");
  const float number = 3;
  accumulate(DataType::float32, RedOp::maximum, &value, &number, 1);
  CHECK_EQUAL(value, 3.0f);
  value = std::nanf("");
  accumulate(DataType::float32, RedOp::sum, &value, &number, 1);
  CHECK(std::isnan(value));
}

}  // namespace
}  // namespace phantora::nccl

int main() {
  using namespace phantora::nccl;
  check_minifloats();
  check_operations();
  check_integers();
  check_averages();
  check_not_a_number();
  return checks_failed();
}
