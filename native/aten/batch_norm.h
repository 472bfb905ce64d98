// Batch normalisation on the CPU, with the arguments of operators that exist for CUDA only: cuDNN's, and those that
// SyncBatchNorm is made of. Statistics are of all dimensions but the second, in float32.
#pragma once
#include <ATen/core/Generator.h>
#include <ATen/core/stack.h>

#include <optional>

namespace phantora::aten {

void cudnn_batch_norm(torch::jit::Stack& stack, std::optional<at::Generator>);
void cudnn_batch_norm_backward(torch::jit::Stack& stack, std::optional<at::Generator>);

void batch_norm_stats(torch::jit::Stack& stack, std::optional<at::Generator>);
void batch_norm_gather_stats(torch::jit::Stack& stack, std::optional<at::Generator>);
void batch_norm_gather_stats_with_counts(torch::jit::Stack& stack, std::optional<at::Generator>);
void batch_norm_elemt(torch::jit::Stack& stack, std::optional<at::Generator>);
void batch_norm_backward_reduce(torch::jit::Stack& stack, std::optional<at::Generator>);
void batch_norm_backward_elemt(torch::jit::Stack& stack, std::optional<at::Generator>);

}  // namespace phantora::aten
