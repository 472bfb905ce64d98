// Recurrent networks: the layout of packed weights is exact, since PyTorch views parameters inside them.
//
// A pseudo layer is (layer, direction). Packed weights hold, pseudo layer by pseudo layer, the input matrices of all
// gates, their recurrent matrices and a projection; then, pseudo layer by pseudo layer, the input biases and the
// recurrent ones. With G gates, H hidden units, P outputs of the projection (H without one), I inputs of the layer:
//   input matrix G·H × I, recurrent matrix G·H × P, projection P × H, biases G·H each.
#include <algorithm>

#include "cudnn/descriptors.h"
#include "cudnn/handle.h"

using phantora::cudnn::bytes_of;
using phantora::cudnn::DataType;
using phantora::cudnn::Dropout;
using phantora::cudnn::Handle;
using phantora::cudnn::launch_named;
using phantora::cudnn::Status;
using phantora::cudnn::Tensor;
using phantora::cudnn::uses_tf32;

namespace {

enum class Cell : int { relu = 0, tanh = 1, lstm = 2, gru = 3 };
enum class Bias : int { none = 0, input = 1, both = 2, recurrent = 3 };
constexpr int skip_input = 1;
constexpr int training = 1;

struct Recurrent {
  Cell cell = Cell::lstm;
  Bias bias = Bias::both;
  bool bidirectional = false;
  bool linear_input = true;
  DataType type = DataType::f32;
  int64_t inputs = 0;
  int64_t hidden = 0;
  int64_t projected = 0;
  int64_t layers = 0;
  bool tf32 = true;

  int64_t gates() const { return cell == Cell::lstm ? 4 : cell == Cell::gru ? 3 : 1; }
  int64_t directions() const { return bidirectional ? 2 : 1; }
  int64_t pseudo_layers() const { return layers * directions(); }
  bool projects() const { return cell == Cell::lstm && projected > 0 && projected < hidden; }
  int64_t outputs() const { return projects() ? projected : hidden; }
  int64_t layer_inputs(int64_t pseudo_layer) const {
    const int64_t layer = pseudo_layer / directions();
    if (layer > 0) return outputs() * directions();
    return linear_input ? inputs : 0;
  }
  int64_t matrix_elements(int64_t pseudo_layer) const {
    const int64_t projection = projects() ? projected * hidden : 0;
    return gates() * hidden * (layer_inputs(pseudo_layer) + outputs()) + projection;
  }
  int64_t biases_per_gate() const { return bias == Bias::none ? 0 : bias == Bias::both ? 2 : 1; }
  int64_t bias_elements() const { return biases_per_gate() * gates() * hidden; }
  int64_t weight_elements() const {
    int64_t sum = pseudo_layers() * bias_elements();
    for (int64_t i = 0; i < pseudo_layers(); ++i) sum += matrix_elements(i);
    return sum;
  }
};

struct Sequence {  // cudnnRNNDataDescriptor_t
  DataType type = DataType::f32;
  int64_t steps = 0;
  int64_t batch = 0;
  int64_t width = 0;

  size_t bytes() const { return bytes_of(type, steps * batch * width); }
};

// A matrix or bias inside the packed weights, in elements; rows 0: there is none.
struct Part {
  int64_t offset = 0;
  int64_t rows = 0;
  int64_t cols = 0;
};

Part matrix_part(const Recurrent& net, int64_t pseudo_layer, int64_t id) {
  Part part;
  for (int64_t i = 0; i < pseudo_layer; ++i) part.offset += net.matrix_elements(i);
  const int64_t gates = net.gates(), width = net.layer_inputs(pseudo_layer);
  if (id < gates) {
    part.offset += id * net.hidden * width;
    part.rows = width > 0 ? net.hidden : 0;
    part.cols = width;
    return part;
  }
  part.offset += gates * net.hidden * width;
  if (id < 2 * gates) {
    part.offset += (id - gates) * net.hidden * net.outputs();
    part.rows = net.hidden;
    part.cols = net.outputs();
    return part;
  }
  part.offset += gates * net.hidden * net.outputs();
  part.rows = net.projects() ? net.projected : 0;
  part.cols = net.hidden;
  return part;
}

Part bias_part(const Recurrent& net, int64_t pseudo_layer, int64_t id) {
  const bool recurrent = id >= net.gates();
  const bool exists = net.bias == Bias::both || net.bias == (recurrent ? Bias::recurrent : Bias::input);
  if (!exists || id >= 2 * net.gates()) return {};
  Part part{pseudo_layer * net.bias_elements(), net.hidden, 1};
  for (int64_t i = 0; i < net.pseudo_layers(); ++i) part.offset += net.matrix_elements(i);
  part.offset += (net.bias == Bias::both ? id : id % net.gates()) * net.hidden;
  return part;
}

void describe(const Recurrent& net, const Part& part, const void* weights, Tensor* desc, void** address) {
  const int rows = static_cast<int>(part.rows), cols = static_cast<int>(part.cols);
  if (desc != nullptr) *desc = {net.type, {rows ? 1 : 0, rows, rows ? cols : 0}, {rows * cols, cols, 1}};
  if (address == nullptr) return;
  const char* base = static_cast<const char*>(weights);
  *address = rows ? const_cast<char*>(base) + bytes_of(net.type, part.offset) : nullptr;
}

}  // namespace

extern "C" {

Status cudnnCreateRNNDescriptor(Recurrent** out) {
  if (out == nullptr) return Status::null_pointer;
  *out = new Recurrent;
  return Status::success;
}
Status cudnnDestroyRNNDescriptor(Recurrent* net) {
  delete net;
  return Status::success;
}
Status cudnnSetRNNDescriptor_v8(Recurrent* net, int, Cell cell, Bias bias, int direction, int input_mode, DataType type,
                                DataType, int math, int32_t inputs, int32_t hidden, int32_t projected, int32_t layers,
                                const Dropout*, uint32_t) {
  if (net == nullptr) return Status::null_pointer;
  if (inputs < 0 || hidden < 1 || layers < 1 || projected < 0) return Status::bad_param;
  const bool bidirectional = direction == 1, linear_input = input_mode != skip_input;
  *net = {cell, bias, bidirectional, linear_input, type, inputs, hidden, projected, layers, uses_tf32(type, math)};
  return Status::success;
}

Status cudnnCreateRNNDataDescriptor(Sequence** out) {
  if (out == nullptr) return Status::null_pointer;
  *out = new Sequence;
  return Status::success;
}
Status cudnnDestroyRNNDataDescriptor(Sequence* sequence) {
  delete sequence;
  return Status::success;
}
Status cudnnSetRNNDataDescriptor(Sequence* sequence, DataType type, int, int steps, int batch, int width,
                                 const int lengths[], void*) {
  if (sequence == nullptr || lengths == nullptr) return Status::null_pointer;
  *sequence = {type, steps, batch, width};
  return Status::success;
}

Status cudnnGetRNNWeightSpaceSize(Handle*, const Recurrent* net, size_t* bytes) {
  if (net == nullptr || bytes == nullptr) return Status::null_pointer;
  *bytes = bytes_of(net->type, net->weight_elements());
  return Status::success;
}

Status cudnnGetRNNWeightParams(Handle*, const Recurrent* net, int32_t pseudo_layer, size_t, const void* weights,
                               int32_t id, Tensor* matrix, void** matrix_address, Tensor* bias, void** bias_address) {
  if (net == nullptr) return Status::null_pointer;
  if (pseudo_layer < 0 || pseudo_layer >= net->pseudo_layers() || id < 0 || id > 8) return Status::bad_param;
  describe(*net, matrix_part(*net, pseudo_layer, id), weights, matrix, matrix_address);
  describe(*net, bias_part(*net, pseudo_layer, id), weights, bias, bias_address);
  return Status::success;
}

// What the algorithm must keep between the passes, for want of published sizes: the gates' and the cell's activations
// of every step and pseudo layer; as work space the gates of one pseudo layer.
Status cudnnGetRNNTempSpaceSizes(Handle*, const Recurrent* net, int mode, const Sequence* x, size_t* work,
                                 size_t* reserve) {
  if (net == nullptr || x == nullptr) return Status::null_pointer;
  const int64_t points = x->steps * x->batch * net->hidden;
  if (work != nullptr) *work = bytes_of(net->type, points * net->gates() * net->directions());
  if (reserve != nullptr) {
    *reserve = mode == training ? bytes_of(net->type, points * (net->gates() + 2) * net->pseudo_layers()) : 0;
  }
  return Status::success;
}

Status cudnnRNNForward(Handle* handle, const Recurrent* net, int, const int32_t[], const Sequence*, const void*,
                       const Sequence* y_desc, void* y, const Tensor* h_desc, const void*, void* hy,
                       const Tensor* c_desc, const void*, void* cy, size_t, const void*, size_t, void*,
                       size_t reserve_bytes, void* reserve) {
  if (net == nullptr || y_desc == nullptr) return Status::null_pointer;
  return launch_named(handle, __func__,
                      {{y, y_desc->bytes()},
                       {hy, h_desc ? h_desc->bytes() : 0},
                       {cy, c_desc ? c_desc->bytes() : 0},
                       {reserve, reserve_bytes}},
                      net->tf32);
}
Status cudnnRNNBackwardData_v8(Handle* handle, const Recurrent* net, const int32_t[], const Sequence*, const void*,
                               const void*, const Sequence* x_desc, void* dx, const Tensor* h_desc, const void*,
                               const void*, void* dhx, const Tensor* c_desc, const void*, const void*, void* dcx,
                               size_t, const void*, size_t, void*, size_t reserve_bytes, void* reserve) {
  if (net == nullptr || x_desc == nullptr) return Status::null_pointer;
  return launch_named(handle, __func__,
                      {{dx, x_desc->bytes()},
                       {dhx, h_desc ? h_desc->bytes() : 0},
                       {dcx, c_desc ? c_desc->bytes() : 0},
                       {reserve, reserve_bytes}},
                      net->tf32);
}
Status cudnnRNNBackwardWeights_v8(Handle* handle, const Recurrent* net, int, const int32_t[], const Sequence*,
                                  const void*, const Tensor*, const void*, const Sequence*, const void*,
                                  size_t weight_bytes, void* dweights, size_t, void*, size_t, void*) {
  if (net == nullptr) return Status::null_pointer;
  return launch_named(handle, __func__, {{dweights, weight_bytes}}, net->tf32);
}

}  // extern "C"
