#include "override.h"

#include <ATen/Context.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "computation.h"
#include "current_stream.h"
#include "op_scope.h"
#include "phantora/capture.h"
#include "phantora/config.h"
#include "phantora/memory.h"
#include "phantora/values.h"
#include "readback.h"
#include "undisturbed.h"

namespace phantora::aten {
namespace {

// An operator that is computed as a whole is open on this thread: those within it have no values of their own.
thread_local int holding = 0;

class WholeOperator {
 public:
  WholeOperator() { ++holding; }
  ~WholeOperator() { --holding; }

 private:
  values::Hold hold_;
};

// An operator that owns what it calls is open on this thread: those within it are part of it.
thread_local bool owned = false;

class Ownership {
 public:
  explicit Ownership(const Operator& op) : before_(std::exchange(owned, owned || op.owner)) {}
  ~Ownership() { owned = before_; }
  Ownership(const Ownership&) = delete;
  Ownership& operator=(const Ownership&) = delete;

 private:
  bool before_;
};

int64_t limit_of(const Operator& op, const Capture& capture) {
  bool large = op.policy == Policy::copy || capture.integral();
  return static_cast<int64_t>(large ? config().value_copy_limit_bytes : config().value_limit_bytes);
}

bool is_computable(const Operator& op, const Capture& capture) {
  return op.computable() && capture.strided() && capture.bytes() <= limit_of(op, capture);
}

// An out= that draws numbers counts as well: what it calls within would draw others.
bool changes_what_it_reads(const Operator& op, const Capture& capture) {
  return op.mutates && (!op.fills || op.seeded || !capture.outputs_apart());
}

uint64_t mixed(uint64_t seed, uint64_t offset) {
  uint64_t z = seed + offset * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// The CUDA generator that an op draws from.
at::Generator generator_of(const Operator& op, const torch::jit::Stack& stack) {
  const c10::IValue* first = stack.data() + stack.size() - op.arguments.size();
  for (size_t i = 0; i < op.arguments.size(); ++i) {
    if (!op.arguments[i].generator || !first[i].isGenerator()) continue;
    at::Generator generator = first[i].toGenerator();
    if (generator.device().is_cuda()) return generator;
  }
  return at::globalContext().defaultGenerator(c10::Device(at::kCUDA, -1));
}

// An op whose result does not depend on random numbers, or not always, must not be taken for one that draws: asking
// where a captured generator stands makes a state for it, which each launch of the graph would have to set.
bool surely_draws(const Operator& op, const torch::jit::Stack& stack) {
  const c10::IValue* first = stack.data() + stack.size() - op.arguments.size();
  const std::vector<c10::Argument>& names = op.handle.schema().arguments();
  bool takes_generator = op.name == "aten::native_dropout";
  for (size_t i = 0; i < op.arguments.size(); ++i) {
    takes_generator |= op.arguments[i].generator;
    if (first[i].isTensor() && first[i].toTensor().defined() && first[i].toTensor().numel() == 0) return false;
    bool says_so = names[i].name() == "train" || names[i].name() == "training";
    if (says_so && first[i].isBool() && !first[i].toBool()) return false;
  }
  return takes_generator;
}

// Of device memory, which a graph that outlives PyTorch's may have lost.
uint64_t word_at(int64_t* pointer) {
  if (memory::find(pointer).kind != memory::Kind::device) return 0;
  values::make_readable(pointer, sizeof *pointer);
  return static_cast<uint64_t>(*pointer);
}

// Where an op has drawn its numbers from: the same place, the same numbers, in a graph as well. A captured op draws
// anew at each launch of its graph, from where the generator stands then. (Attention's dropout in a graph: by how many
// such ops were captured before it.)
class Draw {
 public:
  Draw() = default;
  Draw(const Operator& op, const torch::jit::Stack& stack) {
    if (!op.seeded) return;
    generator_ = generator_of(op, stack);
    certain_ = surely_draws(op, stack);
  }

  // When the op has drawn.
  void settle() {
    if (!generator_.defined()) return;
    if (!captures::active(current_stream())) {
      seed_ = place();
    } else if (certain_) {
      std::lock_guard lock(generator_.mutex());
      captured_ = generator_.get<at::CUDAGeneratorImpl>()->philox_cuda_state(0);
    } else {
      number_ = ++numbered;
    }
  }

  // Of a captured op: when its graph has been launched and its stream has come to it.
  std::optional<uint64_t> seed() const {
    if (seed_ || !generator_.defined()) return seed_;
    if (!captured_.captured_) return mixed(place(), number_);
    return mixed(word_at(captured_.seed_.ptr), word_at(captured_.offset_.ptr) + captured_.offset_intragraph_);
  }

 private:
  uint64_t place() const { return mixed(generator_.current_seed(), generator_.get_offset()); }

  static inline std::atomic<uint64_t> numbered{0};

  at::Generator generator_;
  bool certain_ = false;
  std::optional<uint64_t> seed_;
  at::PhiloxCudaState captured_;
  uint64_t number_ = 0;
};

template <typename Work>
void guarded(const Operator& op, Work&& work) {
  try {
    work();
  } catch (const std::exception& error) {
    fail(op.name + " could not be given its values: " + error.what(), "this is an error in phantora; please report it");
  }
}

void run(const Operator& op, Computation& computation, bool compute) {
  guarded(op, [&] { compute ? computation.run() : computation.invalidate(); });
}

void require_memory(const Operator& op, const Capture& capture) {
  auto require = [&op](const TensorRecord& t) {
    if (t.place != TensorRecord::Place::device || t.numel == 0) return;
    memory::require_device(t.data, static_cast<size_t>(c10::elementSize(t.dtype)), op.name);
  };
  std::for_each(capture.tensors.begin(), capture.tensors.end(), require);
  std::for_each(capture.fresh.begin(), capture.fresh.end(), require);
}

// Each launch of the graph computes it once more.
void finish_captured(const Operator& op, Capture&& capture, StreamId stream, const Draw& draw, bool compute) {
  capture.detach_from_caller();
  captures::attach(stream,
                   [&op, compute, draw, shared = std::make_shared<Capture>(std::move(capture))](StreamId launched) {
                     values::submit(launched, [&op, compute, draw, shared] {
                       require_memory(op, *shared);
                       Computation again(op, Capture(*shared), draw.seed());
                       run(op, again, compute);
                     });
                   });
}

// At once if nothing stands before it on its stream, later otherwise.
void finish(const Operator& op, Capture&& capture, StreamId stream, const Draw& draw, bool compute) {
  if (captures::active(stream)) return finish_captured(op, std::move(capture), stream, draw, compute);
  values::Lock lock;
  Computation computation(op, std::move(capture), draw.seed());
  if (values::idle(stream)) return run(op, computation, compute);
  computation.capture().detach_from_caller();
  values::submit(stream, [later = std::make_shared<Computation>(std::move(computation)), &op, compute] {
    run(op, *later, compute);
  });
}

void count_skipped(const Operator& op, const Capture& capture) {
  if (op.policy == Policy::transparent) return;
  if (!op.computable() && capture.bytes() <= limit_of(op, capture)) {
    ++op.tally.impossible;
    return;
  }
  ++op.tally.skipped;
  uint64_t bytes = static_cast<uint64_t>(capture.bytes());
  if (bytes > op.tally.largest_bytes) op.tally.largest_bytes = bytes;
}

bool has_outputs(const Capture& capture) {
  return !capture.fresh.empty() ||
         std::any_of(capture.tensors.begin(), capture.tensors.end(), [](const TensorRecord& t) { return t.write; });
}

// Fresh memory may hold what was there before: it is unknown until something writes it. No stream has work on it yet,
// but its former owner's may still be queued; and to a graph that is being captured it is fresh at each launch, while
// until the first it holds what it did.
void forget_allocation(const c10::IValue& returned) {
  const at::Tensor& tensor = returned.toTensor();
  const c10::StorageImpl* storage = tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
  auto* data = static_cast<const char*>(storage->data_ptr().get());
  size_t bytes = storage->nbytes();
  if (bytes == 0) return;
  values::Lock lock;
  if (values::idle() && !captures::any()) return values::mark_unknown(data, bytes);
  StreamId stream = streams::find(current_stream_handle())->id;  // not entered: an allocation orders no streams
  values::submit(stream, [data, bytes] { values::mark_unknown(data, bytes); });
}

}  // namespace

void Override::operator()(const c10::OperatorHandle& handle, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  if (!recorder::active() || recorder::is_observer()) return call_original(handle, keys, stack);
  if (op_.policy == Policy::allocate) {
    call_original(handle, keys, stack);
    return forget_allocation(stack->back());
  }
  if (owned) return call_original(handle, keys, stack);
  Ownership ownership(op_);
  Capture capture(op_, *stack);
  Scope scope(op_, capture);
  // A captured stream cannot be waited for: the CUDA kernel finds that out by itself.
  bool captured = op_.policy == Policy::readback && captures::active(current_stream());
  if (op_.policy == Policy::readback && !captured) return read_back(op_, capture, *stack);

  Draw draw(op_, *stack);
  bool as_one = op_.policy == Policy::whole || (op_.policy == Policy::compute && changes_what_it_reads(op_, capture));
  scope.computed = is_computable(op_, capture);
  bool whole = as_one && scope.computed;
  if (whole) {
    WholeOperator guard;
    call_original(handle, keys, stack);
  } else {
    call_original(handle, keys, stack);
  }
  draw.settle();
  if (holding > 0 || (whole ? scope.launched() == 0 : !scope.has_effect())) return;

  capture.add_returns(op_, *stack);
  if (!has_outputs(capture)) return;
  bool compute = is_computable(op_, capture);
  if (!compute) count_skipped(op_, capture);
  finish(op_, std::move(capture), scope.stream, draw, compute);
}

}  // namespace phantora::aten
