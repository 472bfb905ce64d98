#include "recurrent.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <utility>
#include <vector>

#include "recurrent_cell.h"
#include "stack_arguments.h"

namespace phantora::aten {
namespace {

using torch::jit::Stack;

at::Tensor or_zeros(const at::Tensor& tensor, const at::Tensor& like) {
  return tensor.defined() ? tensor : at::zeros_like(like);
}

// What a network is given, and how it looks.
struct Network {
  CellKind kind;
  int64_t layers;
  int64_t directions;
  bool batch_first;
  at::Tensor input;                 // [time, batch, features]
  std::vector<at::Tensor> weights;  // of each layer and direction: of the input, of the state, and a bias for each
  int64_t stride;                   // how many of these a direction has
  at::Tensor hidden, cell;          // [layer · directions + direction, batch, size] at the start

  bool has_bias() const { return stride == 4; }
  const at::Tensor& weight(int64_t row, int64_t which) const { return weights[row * stride + which]; }
  at::Tensor linear(const at::Tensor& x, int64_t row, int64_t which) const {
    at::Tensor product = at::matmul(x, weight(row, which).t());
    return has_bias() ? product + weight(row, which + 2) : product;
  }
  at::Tensor in_time(const at::Tensor& sequence) const { return batch_first ? sequence.transpose(0, 1) : sequence; }
};

// One layer in one direction, played from its start.
class Pass {
 public:
  Pass(const Network& network, int64_t row, const at::Tensor& input)
      : network_(network), row_(row), input_(input), reversed_(row % network.directions == 1) {
    at::Tensor gates = network.linear(input, row, 0);
    CellState state = {network.hidden[row], network.cell.defined() ? network.cell[row] : at::Tensor()};
    for (int64_t i = 0; i < input.size(0); ++i) {
      before_.push_back(state);
      steps_.push_back(step(network.kind, gates[time(i)], network.linear(state.hidden, row, 1), state));
      state = steps_.back().state;
    }
  }

  at::Tensor output() const {
    std::vector<at::Tensor> in_order(steps_.size());
    for (int64_t i = 0; i < count(); ++i) in_order[time(i)] = steps_[i].state.hidden;
    return at::stack(in_order);
  }
  const CellState& end() const { return steps_.back().state; }

  struct Gradients {
    at::Tensor input;
    CellState start;
    std::vector<at::Tensor> weights;
  };

  Gradients back(const at::Tensor& grad_output, CellState grad) const {
    std::vector<at::Tensor> input_gates(steps_.size());
    at::Tensor grad_state_weight = at::zeros_like(network_.weight(row_, 1)), hidden_gates_sum;
    for (int64_t i = count(); i-- > 0;) {
      grad.hidden = grad.hidden + grad_output[time(i)];
      CellGradients gradients = step_back(network_.kind, grad, before_[i], steps_[i]);
      input_gates[time(i)] = gradients.input_gates;
      const at::Tensor& hidden_gates = gradients.hidden_gates;
      grad_state_weight = grad_state_weight + at::matmul(hidden_gates.t(), before_[i].hidden);
      at::Tensor sum = hidden_gates.sum(0);
      hidden_gates_sum = hidden_gates_sum.defined() ? hidden_gates_sum + sum : sum;
      grad = gradients.before;
      grad.hidden = grad.hidden + at::matmul(hidden_gates, network_.weight(row_, 1));
    }
    at::Tensor all = at::stack(input_gates), flat = all.flatten(0, 1);
    std::vector<at::Tensor> weights = {at::matmul(flat.t(), input_.flatten(0, 1)), grad_state_weight};
    if (network_.has_bias()) weights.insert(weights.end(), {flat.sum(0), hidden_gates_sum});
    return {at::matmul(all, network_.weight(row_, 0)), grad, std::move(weights)};
  }

 private:
  int64_t count() const { return static_cast<int64_t>(steps_.size()); }
  int64_t time(int64_t i) const { return reversed_ ? input_.size(0) - 1 - i : i; }

  const Network& network_;
  const int64_t row_;
  const at::Tensor input_;
  const bool reversed_;
  std::vector<CellState> before_;
  std::vector<CellStep> steps_;
};

// All of it.
class Play {
 public:
  explicit Play(const Network& network) : network_(network) {
    at::Tensor input = network.input;
    for (int64_t layer = 0; layer < network.layers; ++layer) {
      std::vector<at::Tensor> outputs;
      for (int64_t direction = 0; direction < network.directions; ++direction) {
        passes_.emplace_back(network, layer * network.directions + direction, input);
        outputs.push_back(passes_.back().output());
      }
      input = at::cat(outputs, -1);
    }
    output_ = input;
  }

  const at::Tensor& output() const { return output_; }
  at::Tensor hidden() const { return ends(&CellState::hidden); }
  at::Tensor cell() const { return network_.kind == CellKind::lstm ? ends(&CellState::cell) : at::Tensor(); }

  struct Gradients {
    at::Tensor input;
    at::Tensor hidden, cell;
    std::vector<at::Tensor> weights;
  };

  Gradients back(at::Tensor grad_output, const at::Tensor& grad_hidden, const at::Tensor& grad_cell) const {
    std::vector<Pass::Gradients> of_rows(passes_.size());
    for (int64_t layer = network_.layers; layer-- > 0;) {
      auto shares = grad_output.chunk(network_.directions, -1);
      at::Tensor grad_input;
      for (int64_t direction = 0; direction < network_.directions; ++direction) {
        int64_t row = layer * network_.directions + direction;
        CellState end = {grad_hidden[row], grad_cell.defined() ? grad_cell[row] : at::Tensor()};
        of_rows[row] = passes_[row].back(shares[direction], end);
        grad_input = grad_input.defined() ? grad_input + of_rows[row].input : of_rows[row].input;
      }
      grad_output = grad_input;
    }
    Gradients gradients{grad_output, {}, {}, {}};
    std::vector<at::Tensor> hidden, cell;
    for (const Pass::Gradients& row : of_rows) {
      hidden.push_back(row.start.hidden);
      if (row.start.cell.defined()) cell.push_back(row.start.cell);
      gradients.weights.insert(gradients.weights.end(), row.weights.begin(), row.weights.end());
    }
    gradients.hidden = at::stack(hidden);
    if (!cell.empty()) gradients.cell = at::stack(cell);
    return gradients;
  }

 private:
  at::Tensor ends(at::Tensor CellState::* part) const {
    std::vector<at::Tensor> rows;
    for (const Pass& pass : passes_) rows.push_back(pass.end().*part);
    return at::stack(rows);
  }

  const Network& network_;
  std::vector<Pass> passes_;
  at::Tensor output_;
};

struct Options {
  const c10::IValue &mode, &projection, &layers, &batch_first, &dropout, &train, &bidirectional, &batch_sizes;
};

Network network_of(const c10::IValue& input, const c10::IValue& weights, const c10::IValue& stride,
                   const c10::IValue& hidden, const c10::IValue& cell, const Options& options) {
  TORCH_CHECK(options.projection.toInt() == 0, "a recurrent network with projections");
  TORCH_CHECK(options.batch_sizes.toIntVector().empty(), "a recurrent network of packed sequences");
  TORCH_CHECK(options.dropout.toDouble() == 0 || !options.train.toBool() || options.layers.toInt() == 1,
              "a recurrent network with dropout");
  Network network{};
  network.kind = static_cast<CellKind>(options.mode.toInt());
  network.layers = options.layers.toInt();
  network.directions = options.bidirectional.toBool() ? 2 : 1;
  network.batch_first = options.batch_first.toBool();
  network.input = network.in_time(in_float(input));
  for (const at::Tensor& weight : weights.toTensorVector()) network.weights.push_back(weight.to(at::kFloat));
  network.stride = stride.toInt();
  network.hidden = in_float(hidden);
  network.cell = in_float(cell);
  return network;
}

at::Tensor as(const at::Tensor& tensor, const c10::IValue& like) {
  return tensor.defined() ? tensor.to(like.toTensor().scalar_type()) : tensor;
}

std::vector<at::Tensor> biased(const c10::IValue& a, const c10::IValue& b, const c10::IValue& bias_a,
                               const c10::IValue& bias_b) {
  auto sum = [](const at::Tensor& gates, const at::Tensor& bias) { return bias.defined() ? gates + bias : gates; };
  return {sum(in_float(a), in_float(bias_a)), sum(in_float(b), in_float(bias_b))};
}

}  // namespace

void cudnn_rnn(Stack& stack, std::optional<at::Generator>) {
  auto [input, weights, stride, buffer, hidden, cell, mode, size, projection, layers, batch_first, dropout, train,
        bidirectional, batch_sizes, dropout_state] = take<16>(stack);
  Network network = network_of(input, weights, stride, hidden, cell,
                               {mode, projection, layers, batch_first, dropout, train, bidirectional, batch_sizes});
  Play play(network);
  // The weights as cuDNN has them in one buffer: what was given, or new, with an order that only cuDNN knows.
  at::Tensor flat = is_defined(buffer) ? buffer.toTensor() : at::zeros({}), no_reserve;
  torch::jit::push(stack, as(network.in_time(play.output()), input), as(play.hidden(), input), as(play.cell(), input),
                   no_reserve, flat);
}

void cudnn_rnn_backward(Stack& stack, std::optional<at::Generator>) {
  auto [input, weights, stride, buffer, hidden, cell, output, grad_output, grad_hidden, grad_cell, mode, size,
        projection, layers, batch_first, dropout, train, bidirectional, batch_sizes, dropout_state, reserve, mask] =
      take<22>(stack);
  Network network = network_of(input, weights, stride, hidden, cell,
                               {mode, projection, layers, batch_first, dropout, train, bidirectional, batch_sizes});
  Play play(network);
  at::Tensor grad = in_float(grad_output);
  grad = grad.defined() ? network.in_time(grad) : at::zeros_like(play.output());
  at::Tensor grad_cells = network.cell.defined() ? or_zeros(in_float(grad_cell), network.cell) : at::Tensor();
  Play::Gradients gradients = play.back(grad, or_zeros(in_float(grad_hidden), network.hidden), grad_cells);
  c10::List<at::Tensor> of_weights;
  for (const at::Tensor& weight : gradients.weights) of_weights.push_back(as(weight, input));
  torch::jit::push(stack, as(network.in_time(gradients.input), input), as(gradients.hidden, input),
                   as(gradients.cell, input), of_weights);
}

void fused_lstm_cell(Stack& stack, std::optional<at::Generator>) {
  auto [a, b, cell, bias_a, bias_b] = take<5>(stack);
  auto gates = biased(a, b, bias_a, bias_b);
  CellStep made = step(CellKind::lstm, gates[0], gates[1], {{}, in_float(cell)});
  torch::jit::push(stack, as(made.state.hidden, cell), as(made.state.cell, cell), as(made.saved, cell));
}

void fused_lstm_cell_backward(Stack& stack, std::optional<at::Generator>) {
  auto [grad_hidden, grad_cell, before, after, workspace, has_bias] = take<6>(stack);
  at::Tensor cell = in_float(before);
  CellState grad = {or_zeros(in_float(grad_hidden), cell), or_zeros(in_float(grad_cell), cell)};
  CellGradients gradients = step_back(CellKind::lstm, grad, {{}, cell}, {{{}, in_float(after)}, in_float(workspace)});
  at::Tensor bias = has_bias.toBool() ? gradients.input_gates.sum(0) : at::Tensor();
  torch::jit::push(stack, as(gradients.input_gates, before), as(gradients.before.cell, before), as(bias, before));
}

void fused_gru_cell(Stack& stack, std::optional<at::Generator>) {
  auto [a, b, hidden, bias_a, bias_b] = take<5>(stack);
  auto gates = biased(a, b, bias_a, bias_b);
  CellStep made = step(CellKind::gru, gates[0], gates[1], {in_float(hidden), {}});
  torch::jit::push(stack, as(made.state.hidden, hidden), as(made.saved, hidden));
}

void fused_gru_cell_backward(Stack& stack, std::optional<at::Generator>) {
  auto [grad_hidden, workspace, has_bias] = take<3>(stack);
  CellGradients gradients = step_back(CellKind::gru, {in_float(grad_hidden), {}}, {}, {{}, in_float(workspace)});
  auto bias = [&has_bias = has_bias](const at::Tensor& gates) {
    return has_bias.toBool() ? gates.sum(0) : at::Tensor();
  };
  torch::jit::push(stack, as(gradients.input_gates, grad_hidden), as(gradients.hidden_gates, grad_hidden),
                   as(gradients.before.hidden, grad_hidden), as(bias(gradients.input_gates), grad_hidden),
                   as(bias(gradients.hidden_gates), grad_hidden));
}

}  // namespace phantora::aten
