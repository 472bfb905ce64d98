#pragma once
#include <ATen/core/stack.h>

#include <array>
#include <optional>

namespace phantora::aten {

// Pops the last n values of a stack, in order.
template <size_t n>
std::array<c10::IValue, n> take(torch::jit::Stack& stack) {
  std::array<c10::IValue, n> arguments;
  for (size_t i = n; i-- > 0;) arguments[i] = torch::jit::pop(stack);
  return arguments;
}

inline std::optional<at::Tensor> optional(const c10::IValue& value) { return value.to<std::optional<at::Tensor>>(); }
inline bool is_defined(const c10::IValue& value) { return value.isTensor() && value.toTensor().defined(); }
inline at::Tensor in_float(const c10::IValue& value) {
  return is_defined(value) ? value.toTensor().to(at::kFloat) : at::Tensor();
}

}  // namespace phantora::aten
