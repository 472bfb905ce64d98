// With x̂ = (x − μ) r: y = w x̂ + b; backwards dw = r Σ dy (x − μ), db = Σ dy and, over the n elements of all ranks,
// dx = w r (dy − Σ dy / n − (x − μ) r² Σ dy (x − μ) / n).
#include "batch_norm.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <vector>

#include "stack_arguments.h"

namespace phantora::aten {
namespace {

using torch::jit::Stack;

at::Tensor float_or(const c10::IValue& value, double otherwise) {
  return is_defined(value) ? in_float(value) : at::scalar_tensor(otherwise, at::kFloat);
}

// Of one number for each channel, as it broadcasts to `like`.
at::Tensor by_channel(const at::Tensor& numbers, const at::Tensor& like) {
  if (numbers.dim() == 0) return numbers;
  std::vector<int64_t> shape(static_cast<size_t>(like.dim()), 1);
  shape[1] = numbers.numel();
  return numbers.to(at::kFloat).view(shape);
}

std::vector<int64_t> but_channels(const at::Tensor& input) {
  std::vector<int64_t> dimensions;
  for (int64_t i = 0; i < input.dim(); ++i) {
    if (i != 1) dimensions.push_back(i);
  }
  return dimensions;
}

// Statistics of several parts, each of counts[i] elements, become those of the whole.
void gather(Stack& stack, const at::Tensor& means, const at::Tensor& inverses, const c10::IValue& running_mean,
            const c10::IValue& running_variance, double momentum, double epsilon, const at::Tensor& counts) {
  at::Tensor weights = counts.to(at::kDouble).view({-1, 1}), part_means = means.to(at::kDouble);
  double total = counts.sum().item<double>();
  at::Tensor mean = (part_means * weights).sum(0) / total;
  at::Tensor variances = inverses.to(at::kDouble).pow(-2) - epsilon;
  at::Tensor variance = ((variances + (part_means - mean).pow(2)) * weights).sum(0) / total;
  auto update = [momentum](const c10::IValue& running, const at::Tensor& now) {
    if (is_defined(running)) running.toTensor().mul_(1 - momentum).add_(now.to(running.toTensor()), momentum);
  };
  update(running_mean, mean);
  update(running_variance, variance * (total / std::max(total - 1, 1.0)));
  torch::jit::push(stack, mean.to(means.scalar_type()), (variance + epsilon).rsqrt().to(means.scalar_type()));
}

}  // namespace

// The CPU's saves nothing when it does not train; CUDA's saves what it normalised with.
void native_batch_norm(Stack& stack, std::optional<at::Generator>) {
  auto [input, weight, bias, mean, variance, training, factor, epsilon] = take<8>(stack);
  auto [output, save_mean, save_invstd] =
      at::native_batch_norm(input.toTensor(), optional(weight), optional(bias), optional(mean), optional(variance),
                            training.toBool(), factor.toDouble(), epsilon.toDouble());
  if (!training.toBool()) {
    save_mean = mean.toTensor();
    save_invstd = (variance.toTensor().to(at::kDouble) + epsilon.toDouble()).rsqrt();
  }
  torch::jit::push(stack, output, save_mean, save_invstd);
}

void cudnn_batch_norm(Stack& stack, std::optional<at::Generator>) {
  auto [input, weight, bias, mean, variance, training, factor, epsilon] = take<8>(stack);
  auto [output, save_mean, save_invstd] =
      at::native_batch_norm(input.toTensor(), optional(weight), optional(bias), optional(mean), optional(variance),
                            training.toBool(), factor.toDouble(), epsilon.toDouble());
  torch::jit::push(stack, output, save_mean, save_invstd, at::Tensor());
}

void cudnn_batch_norm_backward(Stack& stack, std::optional<at::Generator>) {
  auto [input, grad, weight, mean, variance, save_mean, save_invstd, epsilon, reserve] = take<9>(stack);
  auto [grad_input, grad_weight, grad_bias] = at::native_batch_norm_backward(
      grad.toTensor(), input.toTensor(), optional(weight), optional(mean), optional(variance), optional(save_mean),
      optional(save_invstd), true, epsilon.toDouble(), {true, true, true});
  torch::jit::push(stack, grad_input, grad_weight, grad_bias);
}

void batch_norm_stats(Stack& stack, std::optional<at::Generator>) {
  auto [input, epsilon] = take<2>(stack);
  at::Tensor x = in_float(input);
  auto [variance, mean] = at::var_mean(x, but_channels(x), /*unbiased=*/false);
  torch::jit::push(stack, mean, (variance + epsilon.toDouble()).rsqrt());
}

void batch_norm_gather_stats(Stack& stack, std::optional<at::Generator>) {
  auto [input, mean, invstd, running_mean, running_variance, momentum, epsilon, count] = take<8>(stack);
  at::Tensor counts = at::full({mean.toTensor().size(0)}, count.toInt(), at::kDouble);
  gather(stack, mean.toTensor(), invstd.toTensor(), running_mean, running_variance, momentum.toDouble(),
         epsilon.toDouble(), counts);
}

void batch_norm_gather_stats_with_counts(Stack& stack, std::optional<at::Generator>) {
  auto [input, mean, invstd, running_mean, running_variance, momentum, epsilon, counts] = take<8>(stack);
  gather(stack, mean.toTensor(), invstd.toTensor(), running_mean, running_variance, momentum.toDouble(),
         epsilon.toDouble(), counts.toTensor());
}

void batch_norm_elemt(Stack& stack, std::optional<at::Generator>) {
  auto [input, weight, bias, mean, invstd, epsilon] = take<6>(stack);
  at::Tensor x = in_float(input);
  at::Tensor normalized = (x - by_channel(mean.toTensor(), x)) * by_channel(invstd.toTensor(), x);
  at::Tensor output = normalized * by_channel(float_or(weight, 1), x) + by_channel(float_or(bias, 0), x);
  torch::jit::push(stack, output.to(input.toTensor().scalar_type()));
}

void batch_norm_backward_reduce(Stack& stack, std::optional<at::Generator>) {
  auto [grad_output, input, mean, invstd, weight, wants_input, wants_weight, wants_bias] = take<8>(stack);
  at::Tensor x = in_float(input), grad = in_float(grad_output), none;
  at::Tensor sum = grad.sum(but_channels(x));
  at::Tensor moment = (grad * (x - by_channel(mean.toTensor(), x))).sum(but_channels(x));
  auto as_weight = [&weight = weight](const at::Tensor& t) {
    return is_defined(weight) ? t.to(weight.toTensor().scalar_type()) : t;
  };
  torch::jit::push(stack, wants_input.toBool() ? sum : none, wants_input.toBool() ? moment : none,
                   wants_weight.toBool() ? as_weight(moment * in_float(invstd)) : none,
                   wants_bias.toBool() ? as_weight(sum) : none);
}

void batch_norm_backward_elemt(Stack& stack, std::optional<at::Generator>) {
  auto [grad_output, input, mean, invstd, weight, sum, moment, counts] = take<8>(stack);
  at::Tensor x = in_float(input), r = by_channel(invstd.toTensor(), x);
  double total = counts.toTensor().sum().item<double>();
  at::Tensor offset = by_channel(in_float(sum) / total, x), slope = by_channel(in_float(moment) / total, x) * r * r;
  at::Tensor centred = x - by_channel(mean.toTensor(), x);
  at::Tensor grad = (in_float(grad_output) - offset - centred * slope) * r * by_channel(float_or(weight, 1), x);
  torch::jit::push(stack, grad.to(input.toTensor().scalar_type()));
}

}  // namespace phantora::aten
