// Batch normalisation on the CPU, as operators do it that exist for CUDA only, cuDNN's and those that SyncBatchNorm is
// made of, or that save something else there. Statistics are of all dimensions but the second, in float32.
#pragma once
#include <ATen/core/Generator.h>
#include <ATen/core/stack.h>

#include <optional>

namespace phantora::aten {

void native_batch_norm(torch::jit::Stack& stack, std::optional<at::Generator>);
void cudnn_batch_norm(torch::jit::Stack& stack, std::optional<at::Generator>);
void cudnn_batch_norm_backward(torch::jit::Stack& stack, std::optional<at::Generator>);

void batch_norm_stats(torch::jit::Stack& stack, std::optional<at::Generator>);
void batch_norm_gather_stats(torch::jit::Stack& stack, std::optional<at::Generator>);
void batch_norm_gather_stats_with_counts(torch::jit::Stack& stack, std::optional<at::Generator>);
void batch_norm_elemt(torch::jit::Stack& stack, std::optional<at::Generator>);
void batch_norm_backward_reduce(torch::jit::Stack& stack, std::optional<at::Generator>);
void batch_norm_backward_elemt(torch::jit::Stack& stack, std::optional<at::Generator>);

}  // namespace phantora::aten
