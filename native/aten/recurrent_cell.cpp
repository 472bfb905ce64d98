#include "recurrent_cell.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

namespace phantora::aten {
namespace {

at::Tensor sigmoid_slope(const at::Tensor& value) { return value * (1 - value); }
at::Tensor tanh_slope(const at::Tensor& value) { return 1 - value * value; }

CellStep lstm_step(const at::Tensor& gates, const CellState& before) {
  auto parts = gates.chunk(4, 1);
  at::Tensor i = parts[0].sigmoid(), f = parts[1].sigmoid(), g = parts[2].tanh(), o = parts[3].sigmoid();
  at::Tensor cell = f * before.cell + i * g;
  return {{o * cell.tanh(), cell}, at::cat({i, f, g, o}, 1)};
}

CellGradients lstm_back(const CellState& after, const CellState& before, const CellStep& made) {
  auto gates = made.saved.chunk(4, 1);
  const at::Tensor &i = gates[0], &f = gates[1], &g = gates[2], &o = gates[3];
  at::Tensor shown = made.state.cell.tanh();
  at::Tensor cell = after.cell + after.hidden * o * tanh_slope(shown);
  at::Tensor grad = at::cat({cell * g * sigmoid_slope(i), cell * before.cell * sigmoid_slope(f),
                             cell * i * tanh_slope(g), after.hidden * shown * sigmoid_slope(o)},
                            1);
  return {grad, grad, {at::zeros_like(after.hidden), cell * f}};
}

CellStep gru_step(const at::Tensor& input_gates, const at::Tensor& hidden_gates, const at::Tensor& before) {
  auto a = input_gates.chunk(3, 1), b = hidden_gates.chunk(3, 1);
  at::Tensor r = (a[0] + b[0]).sigmoid(), z = (a[1] + b[1]).sigmoid();
  at::Tensor n = (a[2] + r * b[2]).tanh();
  return {{n + z * (before - n), {}}, at::cat({r, z, n, before, b[2]}, 1)};
}

CellGradients gru_back(const at::Tensor& after, const at::Tensor& saved) {
  auto parts = saved.chunk(5, 1);
  const at::Tensor &r = parts[0], &z = parts[1], &n = parts[2], &before = parts[3], &share = parts[4];
  at::Tensor grad_n = after * (1 - z) * tanh_slope(n);
  at::Tensor grad_r = grad_n * share * sigmoid_slope(r), grad_z = after * (before - n) * sigmoid_slope(z);
  return {at::cat({grad_r, grad_z, grad_n}, 1), at::cat({grad_r, grad_z, grad_n * r}, 1), {after * z, {}}};
}

}  // namespace

CellStep step(CellKind kind, const at::Tensor& input_gates, const at::Tensor& hidden_gates, const CellState& before) {
  if (kind == CellKind::lstm) return lstm_step(input_gates + hidden_gates, before);
  if (kind == CellKind::gru) return gru_step(input_gates, hidden_gates, before.hidden);
  at::Tensor sum = input_gates + hidden_gates;
  at::Tensor state = kind == CellKind::relu ? sum.relu() : sum.tanh();
  return {{state, {}}, state};
}

CellGradients step_back(CellKind kind, const CellState& after, const CellState& before, const CellStep& made) {
  if (kind == CellKind::lstm) return lstm_back(after, before, made);
  if (kind == CellKind::gru) return gru_back(after.hidden, made.saved);
  at::Tensor slope = kind == CellKind::relu ? made.saved.gt(0).to(made.saved.scalar_type()) : tanh_slope(made.saved);
  at::Tensor grad = after.hidden * slope;
  return {grad, grad, {at::zeros_like(grad), {}}};
}

}  // namespace phantora::aten
