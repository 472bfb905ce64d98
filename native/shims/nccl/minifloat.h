// Floating-point numbers of 8 and 16 bits: sign, exponent, mantissa from the top.
//
//   value = (-1)^s 2^(e - bias) (1 + m / 2^M)      e > 0
//   value = (-1)^s 2^(1 - bias) m / 2^M            e = 0
//
// Rounding is to nearest, ties to even. What is too large becomes infinity, or, as CUDA converts to 8 bits, the largest
// finite number.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

namespace phantora::nccl {

enum class Overflow {
  infinity,
  saturates,
  no_infinity
};  // no_infinity: saturates, and only the code of all ones is NaN

template <class Bits, int exponent_bits, int mantissa_bits, Overflow overflow>
struct Minifloat {
  Bits bits = 0;

  Minifloat() = default;
  explicit Minifloat(float value) : bits(encode(value)) {}

  explicit operator float() const {
    const int exponent = (bits >> mantissa_bits) & exponent_mask;
    const int mantissa = bits & mantissa_mask;
    const bool negative = (bits >> (exponent_bits + mantissa_bits)) & 1;
    float magnitude;
    if (is_nan(bits & magnitude_mask)) {
      magnitude = std::nanf("");
    } else if (exponent == exponent_mask && overflow != Overflow::no_infinity) {
      magnitude = INFINITY;
    } else if (exponent == 0) {
      magnitude = std::ldexp(static_cast<float>(mantissa), 1 - bias - mantissa_bits);
    } else {
      magnitude = std::ldexp(static_cast<float>(mantissa | (1 << mantissa_bits)), exponent - bias - mantissa_bits);
    }
    return negative ? -magnitude : magnitude;
  }

 private:
  static constexpr int bias = (1 << (exponent_bits - 1)) - 1;
  static constexpr int exponent_mask = (1 << exponent_bits) - 1;
  static constexpr int mantissa_mask = (1 << mantissa_bits) - 1;
  static constexpr int magnitude_mask = (1 << (exponent_bits + mantissa_bits)) - 1;
  static constexpr int infinity = exponent_mask << mantissa_bits;
  static constexpr int nan = overflow == Overflow::no_infinity ? magnitude_mask : infinity | (1 << (mantissa_bits - 1));
  static constexpr int largest = overflow == Overflow::no_infinity ? magnitude_mask - 1 : infinity - 1;

  static constexpr bool is_nan(int magnitude) {
    return overflow == Overflow::no_infinity ? magnitude == nan : magnitude > infinity;
  }

  static Bits encode(float value) {
    const int sign = std::signbit(value) ? 1 << (exponent_bits + mantissa_bits) : 0;
    return static_cast<Bits>(sign | (std::isnan(value) ? nan : encode_magnitude(std::fabs(value))));
  }

  // The magnitude is q quanta of 2^(e - M), e its own exponent but at least the smallest; a q that rounds up to the
  // next power of two carries into the exponent by itself.
  static int encode_magnitude(double magnitude) {
    if (std::isinf(magnitude)) return too_large();
    int exponent;
    std::frexp(magnitude, &exponent);
    exponent = std::max(exponent - 1, 1 - bias);
    const int quanta = static_cast<int>(std::nearbyint(std::ldexp(magnitude, mantissa_bits - exponent)));
    if (quanta < 1 << mantissa_bits) return quanta;
    const int encoded = ((exponent + bias) << mantissa_bits) + quanta - (1 << mantissa_bits);
    return encoded > largest ? too_large() : encoded;
  }

  static constexpr int too_large() { return overflow == Overflow::infinity ? infinity : largest; }
};

using Float16 = Minifloat<uint16_t, 5, 10, Overflow::infinity>;
using Bfloat16 = Minifloat<uint16_t, 8, 7, Overflow::infinity>;
using Float8E4M3 = Minifloat<uint8_t, 4, 3, Overflow::no_infinity>;
using Float8E5M2 = Minifloat<uint8_t, 5, 2, Overflow::saturates>;

}  // namespace phantora::nccl
