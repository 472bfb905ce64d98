// One step of a recurrent network, forwards and backwards. A step gets its input's share of the gates (a) and its
// state's (b), both [batch, gates · hidden size].
#pragma once
#include <ATen/core/Tensor.h>

namespace phantora::aten {

enum class CellKind : int { relu = 0, tanh = 1, lstm = 2, gru = 3 };  // cudnnRNNMode_t

struct CellState {
  at::Tensor hidden;
  at::Tensor cell;  // of an LSTM
};

struct CellStep {
  CellState state;
  at::Tensor saved;  // for backward: LSTM i f g o; GRU r z n, the state before and n's share of b; else the state
};

struct CellGradients {
  at::Tensor input_gates;
  at::Tensor hidden_gates;
  CellState before;  // what reaches the state before, but by way of its gates
};

// LSTM: i f g o = σ σ tanh σ (a + b), c' = f c + i g, h' = o tanh c'.
// GRU: r z = σ (a + b), n = tanh(aₙ + r bₙ), h' = n + z (h − n).
// Else h' = tanh or relu (a + b).
CellStep step(CellKind kind, const at::Tensor& input_gates, const at::Tensor& hidden_gates, const CellState& before);

// `after`: what reaches the state that the step made. `before.cell` and `made.cell` are the LSTM's.
CellGradients step_back(CellKind kind, const CellState& after, const CellState& before, const CellStep& made);

}  // namespace phantora::aten
