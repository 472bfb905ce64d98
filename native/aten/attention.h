// Scaled dot-product attention on the CPU, with the arguments of PyTorch's CUDA kernels.
#pragma once
#include <ATen/core/Generator.h>
#include <ATen/core/stack.h>

#include <optional>

namespace phantora::aten {

// Each throws with dropout: its mask belongs to the CUDA kernel.
void flash_attention(torch::jit::Stack& stack, std::optional<at::Generator>);
void flash_attention_backward(torch::jit::Stack& stack, std::optional<at::Generator>);
void efficient_attention(torch::jit::Stack& stack, std::optional<at::Generator>);
void efficient_attention_backward(torch::jit::Stack& stack, std::optional<at::Generator>);
void cudnn_attention(torch::jit::Stack& stack, std::optional<at::Generator>);
void cudnn_attention_backward(torch::jit::Stack& stack, std::optional<at::Generator>);

}  // namespace phantora::aten
