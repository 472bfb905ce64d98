#pragma once
#include <ATen/core/stack.h>

#include <array>

namespace phantora::aten {

// Pops the last n values of a stack, in order.
template <size_t n>
std::array<c10::IValue, n> take(torch::jit::Stack& stack) {
  std::array<c10::IValue, n> arguments;
  for (size_t i = n; i-- > 0;) arguments[i] = torch::jit::pop(stack);
  return arguments;
}

}  // namespace phantora::aten
