// CPU implementations of operators that exist for CUDA only, or that differ there.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "attention.h"
#include "batch_norm.h"
#include "operator_policy.h"
#include "recurrent.h"
#include "stack_arguments.h"

namespace phantora::aten {
namespace {

using torch::jit::Stack;

// mm, bmm and friends that accumulate in float32 and return it.
void mm_dtype(Stack& stack, std::optional<at::Generator>) {
  auto [a, b, dtype] = take<3>(stack);
  stack.emplace_back(at::matmul(a.toTensor().to(dtype.toScalarType()), b.toTensor().to(dtype.toScalarType())));
}

void addmm_dtype(Stack& stack, std::optional<at::Generator>) {
  auto [self, a, b, dtype, beta, alpha] = take<6>(stack);
  at::ScalarType type = dtype.toScalarType();
  at::Tensor product = at::matmul(a.toTensor().to(type), b.toTensor().to(type));
  stack.emplace_back(self.toTensor().to(type).mul(beta.toScalar()).add(product, alpha.toScalar()));
}

// CUDA counts integers too.
void histc(Stack& stack, std::optional<at::Generator>) {
  auto [self, bins, min, max] = take<4>(stack);
  at::Tensor input = self.toTensor();
  at::Tensor counts = at::histc(input.to(at::kDouble), bins.toInt(), min.toScalar(), max.toScalar());
  stack.emplace_back(counts.to(input.scalar_type()));
}

void cudnn_convolution(Stack& stack, std::optional<at::Generator>) {
  auto [self, weight, padding, stride, dilation, groups, benchmark, deterministic, tf32] = take<9>(stack);
  at::Tensor input = self.toTensor();
  std::vector<int64_t> no_output_padding(static_cast<size_t>(input.dim()) - 2, 0);
  stack.emplace_back(at::convolution(input, weight.toTensor(), std::nullopt, stride.toIntVector(),
                                     padding.toIntVector(), dilation.toIntVector(), false, no_output_padding,
                                     groups.toInt()));
}

void cudnn_convolution_transpose(Stack& stack, std::optional<at::Generator>) {
  auto [self, weight, padding, output_padding, stride, dilation, groups, benchmark, deterministic, tf32] =
      take<10>(stack);
  stack.emplace_back(at::convolution(self.toTensor(), weight.toTensor(), std::nullopt, stride.toIntVector(),
                                     padding.toIntVector(), dilation.toIntVector(), true, output_padding.toIntVector(),
                                     groups.toInt()));
}

void depthwise_convolution(Stack& stack, std::optional<at::Generator>) {
  auto [self, weight, kernel, bias, stride, padding, dilation] = take<7>(stack);
  at::Tensor input = self.toTensor();
  std::vector<int64_t> no_output_padding(static_cast<size_t>(input.dim()) - 2, 0);
  stack.emplace_back(at::convolution(input, weight.toTensor(), optional(bias), stride.toIntVector(),
                                     padding.toIntVector(), dilation.toIntVector(), false, no_output_padding,
                                     input.size(1)));
}

// The CPU's own would draw from the script's CPU generator.
void native_dropout(Stack& stack, std::optional<at::Generator> generator) {
  auto [input, p, train] = take<3>(stack);
  at::Tensor x = input.toTensor();
  if (!train.isNone() && !train.toBool()) {
    torch::jit::push(stack, x.clone(), at::ones(x.sizes(), at::kBool));
    return;
  }
  double keep = 1.0 - p.toDouble();
  at::Tensor mask = at::empty(x.sizes(), at::kBool).bernoulli_(keep, generator);
  torch::jit::push(stack, x * mask * (keep == 0.0 ? 0.0 : 1.0 / keep), mask);
}

void fused_dropout(Stack& stack, std::optional<at::Generator>) {
  auto [self, keep, generator] = take<3>(stack);
  at::Tensor x = self.toTensor();
  at::Tensor mask =
      at::empty(x.sizes(), at::kByte).bernoulli_(keep.toDouble(), generator.to<std::optional<at::Generator>>());
  torch::jit::push(stack, x * mask * (1.0 / keep.toDouble()), mask);
}

// y = x̂ w with x̂ = x r: dx = r (w dy − x̂ mean(x̂ w dy)), dw = Σ x̂ dy.
void fused_rms_norm_backward(Stack& stack, std::optional<at::Generator>) {
  auto [grad_output, input, normalized_shape, rstd, weight, mask] = take<6>(stack);
  at::Tensor x = input.toTensor().to(at::kFloat), grad = grad_output.toTensor().to(at::kFloat);
  at::Tensor r = rstd.toTensor().to(at::kFloat), normalized = x * r;
  auto w = optional(weight);
  bool has_weight = w && w->defined();
  at::Tensor weighted = has_weight ? grad * w->to(at::kFloat) : grad;
  std::vector<int64_t> inner, outer;
  int64_t first = x.dim() - static_cast<int64_t>(normalized_shape.toIntVector().size());
  for (int64_t i = 0; i < x.dim(); ++i) (i < first ? outer : inner).push_back(i);
  at::Tensor grad_input = r * (weighted - normalized * at::mean(normalized * weighted, inner, true));
  at::Tensor grad_weight;
  if (has_weight) {
    at::Tensor each = grad * normalized;
    grad_weight = (outer.empty() ? each : each.sum(outer)).to(w->scalar_type());
  }
  torch::jit::push(stack, grad_input.to(input.toTensor().scalar_type()), grad_weight);
}

void cudnn_grid_sampler(Stack& stack, std::optional<at::Generator>) {
  constexpr int64_t bilinear = 0, zeros_outside = 0;
  auto [self, grid] = take<2>(stack);
  stack.emplace_back(at::grid_sampler(self.toTensor(), grid.toTensor(), bilinear, zeros_outside, true));
}

// The CPU's needs a buffer that CUDA's forward does not fill.
void log_sigmoid_backward(Stack& stack, std::optional<at::Generator>) {
  auto [grad_output, self, buffer] = take<3>(stack);
  stack.emplace_back(grad_output.toTensor() * at::sigmoid(-self.toTensor()));
}

// The CPU's leaves out which bag an index is in where its own sum does without; CUDA's is asked for it backwards. Where
// offsets end with the number of indices, CUDA's sizes have room for a bag behind the last.
void embedding_bag(Stack& stack, std::optional<at::Generator>) {
  auto [weight, indices, offsets, by_frequency, mode, sparse, weights, ends_with_last, padding] = take<9>(stack);
  at::Tensor begins = offsets.toTensor().to(at::kLong);
  bool extra = ends_with_last.toBool();
  auto [output, unused, sizes, maxima] =
      at::_embedding_bag(weight.toTensor(), indices.toTensor(), offsets.toTensor(), by_frequency.toBool(), mode.toInt(),
                         sparse.toBool(), optional(weights), extra, padding.toInt());
  at::Tensor bags = at::searchsorted(extra ? begins.slice(0, 0, -1) : begins, at::arange(indices.toTensor().numel()),
                                     /*out_int32=*/false, /*right=*/true);
  if (sizes.numel() < begins.numel()) sizes = at::constant_pad_nd(sizes, {0, begins.numel() - sizes.numel()});
  torch::jit::push(stack, output, bags - 1, sizes, maxima);
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
    {"aten::log_sigmoid_backward", log_sigmoid_backward},
    {"aten::_embedding_bag", embedding_bag},
    {"aten::_embedding_bag_forward_only", embedding_bag},
    {"aten::native_dropout", native_dropout},
    {"aten::_fused_dropout", fused_dropout},
    {"aten::_fused_rms_norm_backward", fused_rms_norm_backward},
    {"aten::_conv_depthwise2d", depthwise_convolution},
    {"aten::conv_depthwise3d", depthwise_convolution},
    {"aten::_scaled_dot_product_flash_attention", flash_attention},
    {"aten::_scaled_dot_product_flash_attention_backward", flash_attention_backward},
    {"aten::_scaled_dot_product_efficient_attention", efficient_attention},
    {"aten::_scaled_dot_product_efficient_attention_backward", efficient_attention_backward},
    {"aten::_scaled_dot_product_cudnn_attention", cudnn_attention},
    {"aten::_scaled_dot_product_cudnn_attention_backward", cudnn_attention_backward},
    {"aten::cudnn_convolution", cudnn_convolution},
    {"aten::cudnn_convolution_transpose", cudnn_convolution_transpose},
    {"aten::cudnn_grid_sampler", cudnn_grid_sampler},
    {"aten::native_batch_norm", native_batch_norm},
    {"aten::_native_batch_norm_legit", native_batch_norm},
    {"aten::cudnn_batch_norm", cudnn_batch_norm},
    {"aten::cudnn_batch_norm_backward", cudnn_batch_norm_backward},
    {"aten::batch_norm_stats", batch_norm_stats},
    {"aten::batch_norm_gather_stats", batch_norm_gather_stats},
    {"aten::batch_norm_gather_stats_with_counts", batch_norm_gather_stats_with_counts},
    {"aten::batch_norm_elemt", batch_norm_elemt},
    {"aten::batch_norm_backward_reduce", batch_norm_backward_reduce},
    {"aten::batch_norm_backward_elemt", batch_norm_backward_elemt},
    {"aten::_cudnn_rnn", cudnn_rnn},
    {"aten::_cudnn_rnn_backward", cudnn_rnn_backward},
    {"aten::_thnn_fused_lstm_cell", fused_lstm_cell},
    {"aten::_thnn_fused_lstm_cell_backward_impl", fused_lstm_cell_backward},
    {"aten::_thnn_fused_gru_cell", fused_gru_cell},
    {"aten::_thnn_fused_gru_cell_backward", fused_gru_cell_backward},
};

}  // namespace

Replacement replacement_of(std::string_view name) {
  for (const Entry& entry : entries) {
    if (entry.name == name) return entry.replacement;
  }
  return nullptr;
}

}  // namespace phantora::aten
