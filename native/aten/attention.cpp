// P = softmax(scale · Q Kᵀ + bias), O = P V. Backwards, with dP = dO Vᵀ and δ = rowsum(dO ∘ O):
// dV = Pᵀ dO, dS = P ∘ (dP − δ), dQ = scale · dS K, dK = scale · dSᵀ Q, dbias = dS.
// Tensors are [batch, heads, sequence, head size]; several query heads may share a key head.
#include "attention.h"

#include <ATen/ExpandUtils.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <cmath>
#include <tuple>

#include "stack_arguments.h"

namespace phantora::aten {
namespace {

using torch::jit::Stack;

struct Attention {
  at::Tensor query, key, value;  // as given
  at::Tensor q, k, v;            // float32, one key head for each query head
  at::Tensor scores;             // scaled, biased and masked
  double scale;

  Attention(const c10::IValue& query_, const c10::IValue& key_, const c10::IValue& value_, const at::Tensor& bias,
            bool causal, const c10::IValue& scale_, const c10::IValue& dropout)
      : query(query_.toTensor()), key(key_.toTensor()), value(value_.toTensor()) {
    TORCH_CHECK(dropout.toDouble() == 0.0, "attention with dropout");
    q = query.to(at::kFloat);
    k = key.to(at::kFloat).repeat_interleave(groups(), 1);
    v = value.to(at::kFloat).repeat_interleave(groups(), 1);
    scale = scale_.isNone() ? 1.0 / std::sqrt(static_cast<double>(q.size(-1))) : scale_.toDouble();
    scores = at::matmul(q, k.transpose(-2, -1)).mul(scale);
    if (bias.defined()) scores = scores + bias.to(at::kFloat);
    if (causal) scores.masked_fill_(at::ones(scores.sizes().slice(2), at::kBool).triu(1), -INFINITY);
  }

  int64_t groups() const { return query.size(1) / key.size(1); }
  at::Tensor logsumexp() const { return at::logsumexp(scores, {-1}); }
  at::Tensor output() const { return at::matmul(at::softmax(scores, -1), v).to(query.scalar_type()); }

  struct Gradients {
    at::Tensor query, key, value, scores;
  };

  Gradients backward(const at::Tensor& grad_output, const at::Tensor& output) const {
    at::Tensor weights = at::softmax(scores, -1);
    at::Tensor grad = grad_output.to(at::kFloat);
    at::Tensor delta = grad.mul(output.to(at::kFloat)).sum({-1}, true);
    at::Tensor grad_scores = weights * (at::matmul(grad, v.transpose(-2, -1)) - delta);
    return {
        at::matmul(grad_scores, k).mul(scale).to(query.scalar_type()),
        shared(at::matmul(grad_scores.transpose(-2, -1), q).mul(scale)).to(key.scalar_type()),
        shared(at::matmul(weights.transpose(-2, -1), grad)).to(value.scalar_type()),
        grad_scores,
    };
  }

 private:
  // Sums over the query heads that share a key head.
  at::Tensor shared(const at::Tensor& grad) const {
    return grad.reshape({grad.size(0), grad.size(1) / groups(), groups(), grad.size(2), grad.size(3)}).sum(2);
  }
};

at::Tensor tensor_or_none(const c10::IValue& value) { return value.isTensor() ? value.toTensor() : at::Tensor(); }

}  // namespace

void flash_attention(Stack& stack, std::optional<at::Generator>) {
  auto [query, key, value, dropout, causal, debug_mask, scale] = take<7>(stack);
  Attention attention(query, key, value, {}, causal.toBool(), scale, dropout);
  at::Tensor none;
  torch::jit::push(stack, attention.output(), attention.logsumexp(), none, none, 0, 0, none, none, none);
}

void flash_attention_backward(Stack& stack, std::optional<at::Generator>) {
  auto [grad, query, key, value, output, logsumexp, cum_q, cum_k, max_q, max_k, dropout, causal, seed, offset, scale] =
      take<15>(stack);
  Attention attention(query, key, value, {}, causal.toBool(), scale, dropout);
  auto gradients = attention.backward(grad.toTensor(), output.toTensor());
  torch::jit::push(stack, gradients.query, gradients.key, gradients.value);
}

void efficient_attention(Stack& stack, std::optional<at::Generator>) {
  constexpr int64_t row_alignment = 32;  // of the kernel's logsumexp
  auto [query, key, value, bias, wants_logsumexp, dropout, causal, scale] = take<8>(stack);
  Attention attention(query, key, value, tensor_or_none(bias), causal.toBool(), scale, dropout);
  at::Tensor logsumexp = attention.logsumexp(), none;
  int64_t padding = (row_alignment - logsumexp.size(-1) % row_alignment) % row_alignment;
  logsumexp = wants_logsumexp.toBool() ? at::constant_pad_nd(logsumexp, {0, padding}, INFINITY) : none;
  torch::jit::push(stack, attention.output(), logsumexp, none, none);
}

void efficient_attention_backward(Stack& stack, std::optional<at::Generator>) {
  auto [grad, query, key, value, bias, output, logsumexp, seed, offset, dropout, mask, causal, scale] = take<13>(stack);
  Attention attention(query, key, value, tensor_or_none(bias), causal.toBool(), scale, dropout);
  auto gradients = attention.backward(grad.toTensor(), output.toTensor());
  at::Tensor grad_bias;
  if (bias.isTensor() && bias.toTensor().defined()) {
    grad_bias = at::sum_to(gradients.scores, bias.toTensor().sizes()).to(bias.toTensor().scalar_type());
  }
  torch::jit::push(stack, gradients.query, gradients.key, gradients.value, grad_bias);
}

void cudnn_attention(Stack& stack, std::optional<at::Generator>) {
  auto [query, key, value, bias, wants_logsumexp, dropout, causal, debug_mask, scale] = take<9>(stack);
  Attention attention(query, key, value, tensor_or_none(bias), causal.toBool(), scale, dropout);
  at::Tensor none, logsumexp = wants_logsumexp.toBool() ? attention.logsumexp().unsqueeze(-1) : none;
  torch::jit::push(stack, attention.output(), logsumexp, none, none, 0, 0, none, none, none);
}

void cudnn_attention_backward(Stack& stack, std::optional<at::Generator>) {
  auto [grad, query, key, value, output, logsumexp, seed, offset, bias, cum_q, cum_k, max_q, max_k, dropout, causal,
        scale] = take<16>(stack);
  Attention attention(query, key, value, tensor_or_none(bias), causal.toBool(), scale, dropout);
  auto gradients = attention.backward(grad.toTensor(), output.toTensor());
  torch::jit::push(stack, gradients.query, gradients.key, gradients.value);
}

}  // namespace phantora::aten
