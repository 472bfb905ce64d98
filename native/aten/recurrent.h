// Recurrent networks on the CPU, with the arguments of operators that exist for CUDA only. Each throws where it cannot:
// dropout between layers (its mask belongs to cuDNN), projections, packed sequences.
#pragma once
#include <ATen/core/Generator.h>
#include <ATen/core/stack.h>

#include <optional>

namespace phantora::aten {

void cudnn_rnn(torch::jit::Stack& stack, std::optional<at::Generator>);
void cudnn_rnn_backward(torch::jit::Stack& stack, std::optional<at::Generator>);

void fused_lstm_cell(torch::jit::Stack& stack, std::optional<at::Generator>);
void fused_lstm_cell_backward(torch::jit::Stack& stack, std::optional<at::Generator>);
void fused_gru_cell(torch::jit::Stack& stack, std::optional<at::Generator>);
void fused_gru_cell_backward(torch::jit::Stack& stack, std::optional<at::Generator>);

}  // namespace phantora::aten
