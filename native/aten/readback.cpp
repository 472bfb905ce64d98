#include "readback.h"

#include <ATen/Functions.h>

#include "computation.h"
#include "current_stream.h"
#include "host_alias.h"
#include "phantora/config.h"
#include "phantora/launch.h"
#include "phantora/values.h"
#include "undisturbed.h"

namespace phantora::aten {
namespace {

bool is_nonzero(const Operator& op) { return op.name.starts_with("aten::nonzero"); }

bool is_small(const Capture& capture) {
  uint64_t limit = capture.integral() ? config().value_copy_limit_bytes : config().value_limit_bytes;
  return capture.strided() && capture.bytes() <= static_cast<int64_t>(limit);
}

// What the CPU kernel returns for the arguments on the stack, its tensors seen from the CPU.
torch::jit::Stack compute(const Operator& op, const torch::jit::Stack& stack, const Capture& capture) {
  torch::jit::Stack results(stack.end() - static_cast<std::ptrdiff_t>(op.arguments.size()), stack.end());
  for (size_t i = 0, next = 0; i < results.size(); ++i) {
    if (!results[i].isTensor()) continue;
    const TensorRecord& t = capture.tensors[next++];
    results[i] = op.arguments[i].out ? at::empty({0}, at::TensorOptions().dtype(t.dtype)) : host_alias(capture, t);
  }
  Undisturbed undisturbed;
  op.cpu_kernel.callBoxed(op.handle, c10::DispatchKeySet(c10::DispatchKey::CPU), &results);
  return results;
}

const c10::IValue* argument(const Operator& op, const torch::jit::Stack& stack, const char* name) {
  const c10::IValue* first = stack.data() + stack.size() - op.arguments.size();
  const auto& schema = op.handle.schema().arguments();
  for (size_t i = 0; i < schema.size(); ++i) {
    if (schema[i].name() == name) return &first[i];
  }
  return nullptr;
}

bool is_set(const Operator& op, const torch::jit::Stack& stack, const char* flag) {
  const c10::IValue* value = argument(op, stack, flag);
  return value && value->toBool();
}

// What inputs of zeros give. Tensors on the meta device stand for outputs of that size with unknown values.
torch::jit::Stack outputs_for_zeros(const Operator& op, const torch::jit::Stack& stack, const at::Tensor& input) {
  auto longs = at::TensorOptions().dtype(at::kLong);
  if (op.name == "aten::equal") return {true};
  if (is_nonzero(op)) return {at::empty({0, input.dim()}, longs)};
  const c10::IValue* dim = argument(op, stack, "dim");
  if (op.name == "aten::mode") {
    at::Tensor values = input.to(at::kMeta).amax(dim->toInt(), is_set(op, stack, "keepdim"));
    return {at::zeros_like(values, values.options().device(at::kCPU)), at::zeros(values.sizes(), longs)};
  }
  std::vector<int64_t> distinct{1}, inverse = input.sizes().vec();
  int64_t count = input.numel();
  if (dim && dim->isInt()) {
    int64_t along = dim->toInt() < 0 ? dim->toInt() + input.dim() : dim->toInt();
    distinct = inverse;
    count = distinct[along];
    distinct[along] = 1;
    inverse = {count};
  }
  torch::jit::Stack outputs = {
      at::zeros(distinct, at::TensorOptions().dtype(input.scalar_type())),
      is_set(op, stack, "return_inverse") ? at::empty(inverse, longs.device(at::kMeta)) : at::empty({0}, longs),
      is_set(op, stack, "return_counts") ? at::full({1}, count, longs) : at::empty({0}, longs),
  };
  outputs.resize(op.returns.size());
  return outputs;
}

// The same on the device, laid out as the CUDA kernel does.
at::Tensor allocate(const Operator& op, const at::Tensor& result, c10::Device device) {
  auto options = result.options().device(device);
  if (is_nonzero(op)) return at::empty({result.size(1), result.size(0)}, options).t();
  return at::empty(result.sizes(), options);
}

void fill(const at::Tensor& output, const at::Tensor& result, bool known) {
  auto* data = static_cast<char*>(output.mutable_data_ptr());
  if (result.is_meta() || result.nbytes() > config().value_copy_limit_bytes) {
    return values::mark_unknown(data, result.nbytes());
  }
  at::Tensor dense = output.is_contiguous() ? result.contiguous() : result.t().contiguous();
  std::memcpy(data, dense.const_data_ptr(), dense.nbytes());
  known ? values::mark_known(data, dense.nbytes()) : values::mark_tainted(data, dense.nbytes());
}

// `given` is the out= argument, if there is one.
c10::IValue on_device(const Operator& op, const at::Tensor& result, c10::Device device, const at::Tensor& given,
                      bool known) {
  at::Tensor output = given.defined() ? given.resize_(result.sizes()) : allocate(op, result, device);
  if (result.numel() > 0) fill(output, result, known);
  return output;
}

}  // namespace

void read_back(const Operator& op, Capture& capture, torch::jit::Stack& stack) {
  at::Tensor input = stack[stack.size() - op.arguments.size()].toTensor();
  StreamId stream = current_stream();
  Launch node;
  node.kernel = op.name;
  launch(stream, node);
  values::drain_stream(stream);
  recorder::sync_stream(stream);

  bool known = false;
  torch::jit::Stack results;
  if (is_small(capture)) {
    values::Lock lock;
    known = true;
    for (const TensorRecord& t : capture.tensors) known = (t.unread || !make_readable(capture, t)) && known;
    results = compute(op, stack, capture);
  } else {
    results = outputs_for_zeros(op, stack, input);
  }
  if (!known) values::count_unknown_read(op.name.c_str(), static_cast<size_t>(capture.bytes()));
  const c10::IValue* given = argument(op, stack, "out");
  at::Tensor out = given ? given->toTensor() : at::Tensor();
  stack.resize(stack.size() - op.arguments.size());
  for (c10::IValue& result : results) {
    stack.push_back(result.isTensor() ? on_device(op, result.toTensor(), input.device(), out, known)
                                      : std::move(result));
  }
}

}  // namespace phantora::aten
