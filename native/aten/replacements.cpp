// CPU implementations of operators that exist for CUDA only, or that differ there.
#include <ATen/Functions.h>

#include <array>

#include "operator_policy.h"

namespace phantora::aten {
namespace {

using torch::jit::Stack;

template <size_t n>
std::array<c10::IValue, n> take(Stack& stack) {
  std::array<c10::IValue, n> arguments;
  for (size_t i = n; i-- > 0;) arguments[i] = torch::jit::pop(stack);
  return arguments;
}

std::optional<at::Tensor> optional(const c10::IValue& value) { return value.to<std::optional<at::Tensor>>(); }

// mm, bmm and friends that accumulate in float32 and return it.
void mm_dtype(Stack& stack) {
  auto [a, b, dtype] = take<3>(stack);
  stack.emplace_back(at::matmul(a.toTensor().to(dtype.toScalarType()), b.toTensor().to(dtype.toScalarType())));
}

void addmm_dtype(Stack& stack) {
  auto [self, a, b, dtype, beta, alpha] = take<6>(stack);
  at::ScalarType type = dtype.toScalarType();
  at::Tensor product = at::matmul(a.toTensor().to(type), b.toTensor().to(type));
  stack.emplace_back(self.toTensor().to(type).mul(beta.toScalar()).add(product, alpha.toScalar()));
}

// CUDA counts integers too.
void histc(Stack& stack) {
  auto [self, bins, min, max] = take<4>(stack);
  at::Tensor input = self.toTensor();
  at::Tensor counts = at::histc(input.to(at::kDouble), bins.toInt(), min.toScalar(), max.toScalar());
  stack.emplace_back(counts.to(input.scalar_type()));
}

void cudnn_convolution(Stack& stack) {
  auto [self, weight, padding, stride, dilation, groups, benchmark, deterministic, tf32] = take<9>(stack);
  at::Tensor input = self.toTensor();
  std::vector<int64_t> no_output_padding(static_cast<size_t>(input.dim()) - 2, 0);
  stack.emplace_back(at::convolution(input, weight.toTensor(), std::nullopt, stride.toIntVector(), padding.toIntVector(),
                                     dilation.toIntVector(), false, no_output_padding, groups.toInt()));
}

void cudnn_convolution_transpose(Stack& stack) {
  auto [self, weight, padding, output_padding, stride, dilation, groups, benchmark, deterministic, tf32] =
      take<10>(stack);
  stack.emplace_back(at::convolution(self.toTensor(), weight.toTensor(), std::nullopt, stride.toIntVector(),
                                     padding.toIntVector(), dilation.toIntVector(), true, output_padding.toIntVector(),
                                     groups.toInt()));
}

void cudnn_batch_norm(Stack& stack) {
  auto [input, weight, bias, mean, variance, training, factor, epsilon] = take<8>(stack);
  auto [output, save_mean, save_invstd] =
      at::native_batch_norm(input.toTensor(), optional(weight), optional(bias), optional(mean), optional(variance),
                            training.toBool(), factor.toDouble(), epsilon.toDouble());
  torch::jit::push(stack, output, save_mean, save_invstd, at::Tensor());
}

void cudnn_batch_norm_backward(Stack& stack) {
  auto [input, grad, weight, mean, variance, save_mean, save_invstd, epsilon, reserve] = take<9>(stack);
  auto [grad_input, grad_weight, grad_bias] = at::native_batch_norm_backward(
      grad.toTensor(), input.toTensor(), optional(weight), optional(mean), optional(variance), optional(save_mean),
      optional(save_invstd), true, epsilon.toDouble(), {true, true, true});
  torch::jit::push(stack, grad_input, grad_weight, grad_bias);
}

struct Entry {
  std::string_view name;
  Replacement replacement;
};

constexpr Entry entries[] = {
    {"aten::mm.dtype", mm_dtype},
    {"aten::bmm.dtype", mm_dtype},
    {"aten::addmm.dtype", addmm_dtype},
    {"aten::baddbmm.dtype", addmm_dtype},
    {"aten::histc", histc},
    {"aten::cudnn_convolution", cudnn_convolution},
    {"aten::cudnn_convolution_transpose", cudnn_convolution_transpose},
    {"aten::cudnn_batch_norm", cudnn_batch_norm},
    {"aten::cudnn_batch_norm_backward", cudnn_batch_norm_backward},
};

}  // namespace

Replacement replacement_of(std::string_view name) {
  for (const Entry& entry : entries) {
    if (entry.name == name) return entry.replacement;
  }
  return nullptr;
}

}  // namespace phantora::aten
