#include "computation.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <c10/util/Exception.h>

#include <string>

#include "benign.h"
#include "host_alias.h"
#include "phantora/recorder.h"
#include "undisturbed.h"

namespace phantora::aten {

using Place = TensorRecord::Place;
using Kind = ArgumentRecord::Kind;
using values::State;

namespace {

// Not all operators throw an IndexError.
bool is_about_an_index(const c10::Error& error) {
  const std::string& what = error.msg();
  return dynamic_cast<const c10::IndexError*>(&error) != nullptr || what.find("out of bounds") != std::string::npos ||
         what.find("out of range") != std::string::npos;
}

}  // namespace

// `impossible`: the CPU has no implementation for this dtype, say.
Computation::Outcome Computation::call(torch::jit::Stack& stack, bool tainted) const {
  try {
    if (op_.replacement) {
      op_.replacement(stack, generator());
    } else {
      op_.cpu_kernel.callBoxed(op_.handle, c10::DispatchKeySet(c10::DispatchKey::CPU), &stack);
    }
    return Outcome::done;
  } catch (const c10::Error& error) {
    if (!is_about_an_index(error)) return Outcome::impossible;
    if (tainted) return Outcome::refused;
    fail(op_.name + ": " + error.msg(),
         "the values are those that the script has computed: on a real GPU a device-side assertion would end the job");
  } catch (const std::exception&) {
    return Outcome::impossible;
  }
}

std::optional<at::Generator> Computation::generator() const {
  if (!seed_) return std::nullopt;
  return at::make_generator<at::CPUGeneratorImpl>(*seed_);
}

Computation::Tensors Computation::aliases() const {
  Tensors tensors;
  size_t next_host = 0;
  for (const TensorRecord& t : capture_.tensors) {
    if (t.place == Place::absent) {
      tensors.emplace_back();
    } else {
      tensors.push_back(t.place == Place::host ? capture_.host_tensors[next_host++] : host_alias(capture_, t));
    }
  }
  return tensors;
}

torch::jit::Stack Computation::arguments(const Tensors& tensors) const {
  torch::jit::Stack stack;
  stack.reserve(op_.arguments.size());
  size_t next_tensor = 0, next_value = 0;
  auto next = [&] { return tensors[next_tensor++]; };
  for (size_t i = 0; i < op_.arguments.size(); ++i) {
    const ArgumentRecord& argument = capture_.arguments[i];
    if (argument.kind == Kind::tensor) {
      stack.emplace_back(next());
    } else if (argument.kind == Kind::list) {
      c10::List<at::Tensor> list;
      for (uint32_t n = 0; n < argument.count; ++n) list.push_back(next());
      stack.emplace_back(std::move(list));
    } else if (argument.kind == Kind::optional_list) {
      c10::List<std::optional<at::Tensor>> list;
      for (uint32_t n = 0; n < argument.count; ++n) {
        at::Tensor tensor = next();
        list.push_back(tensor.defined() ? std::make_optional(std::move(tensor)) : std::nullopt);
      }
      stack.emplace_back(std::move(list));
    } else if (op_.arguments[i].generator && seed_) {
      stack.emplace_back(*generator());
      ++next_value;
    } else {
      const c10::IValue& value = capture_.values[next_value++];
      stack.emplace_back(value.isDevice() ? c10::IValue(c10::Device(at::kCPU)) : value);
    }
  }
  return stack;
}

bool Computation::read_inputs() {
  bool unknown = false;
  for (const TensorRecord& t : capture_.tensors) {
    if (t.place != Place::device || t.numel == 0 || t.unread) continue;
    unknown = make_readable(capture_, t) || unknown;
  }
  return unknown;
}

void Computation::run() {
  Undisturbed undisturbed;
  if (!op_.impossible_calls.empty() && op_.impossible_calls.contains(capture_.hash())) return invalidate();
  bool tainted = read_inputs();
  torch::jit::Stack stack = arguments(aliases());
  Outcome outcome = call(stack, tainted);
  if (outcome == Outcome::impossible) {
    op_.impossible_calls.insert(capture_.hash());
    ++op_.tally.impossible;
  }
  if (outcome != Outcome::done) return invalidate();
  ++op_.tally.computed;
  mark_written(tainted ? State::tainted : State::known);
  store(stack, tainted);
  if (!tainted) return;
  op_.moves ? mark_moved() : soften_outputs(op_, capture_);
}

// Of an operator that only moves elements: it moves in the same way which of them are known.
void Computation::mark_moved() {
  Tensors unknown;
  for (const TensorRecord& t : capture_.tensors) {
    bool on_device = t.place == Place::device;
    unknown.push_back(on_device ? unknown_elements(capture_, t) : at::zeros(capture_.sizes(t), at::kBool));
  }
  torch::jit::Stack stack = arguments(unknown);
  if (call(stack, true) != Outcome::done) return;
  for (size_t i = 0; i < unknown.size(); ++i) {
    const TensorRecord& t = capture_.tensors[i];
    if (t.write && t.place == Place::device) mark_elements(capture_, t, unknown[i]);
  }
  for (const TensorRecord& t : capture_.fresh) {
    if (t.place == Place::device) mark_elements(capture_, t, stack.back().toTensor());
  }
}

// Copies what the CPU returned into the memory that the CUDA kernel returned. Where a replacement returns nothing the
// CUDA kernel has a workspace, which only its own kernels look into; outputs to which the CPU gives another shape stay
// unknown.
void Computation::store(const torch::jit::Stack& stack, bool tainted) {
  size_t next_fresh = 0;
  auto store_one = [&](const at::Tensor& result) {
    if (next_fresh == capture_.fresh.size()) return;
    const TensorRecord& t = capture_.fresh[next_fresh++];
    if (t.place != Place::device) return;
    bool unused = op_.replacement && t.numel > 0 && (!result.defined() || result.numel() == 0);
    bool fits = unused || (result.defined() && result.sizes() == capture_.sizes(t));
    if (unused) {
      host_alias(capture_, t).zero_();
    } else if (fits) {
      host_alias(capture_, t).copy_(result);
    }
    mark(capture_, t, !fits ? State::unknown : tainted ? State::tainted : State::known);
  };
  for (size_t i = 0; i < op_.returns.size() && i < stack.size(); ++i) {
    if (op_.returns[i].argument >= 0) continue;
    if (stack[i].isTensor()) {
      store_one(stack[i].toTensor());
    } else if (stack[i].isTensorList()) {
      for (const at::Tensor& tensor : stack[i].toTensorList()) store_one(tensor);
    }
  }
}

void Computation::mark_written(State state) {
  for (const TensorRecord& t : capture_.tensors) {
    if (t.write && t.place == Place::device) mark(capture_, t, state);
  }
}

void Computation::invalidate() {
  mark_written(State::unknown);
  for (const TensorRecord& t : capture_.fresh) {
    if (t.place == Place::device) mark(capture_, t, State::unknown);
  }
  if (op_.benign == Benign::zeros) return;
  Undisturbed undisturbed;
  store_benign_outputs(op_, capture_);
}

}  // namespace phantora::aten
