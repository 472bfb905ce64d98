// Values of one operator call, computed on the CPU over device memory, or declared unknown.
#pragma once
#include <optional>

#include "capture.h"
#include "phantora/values.h"

namespace phantora::aten {

// Has its turn in stream order; owns everything that it needs.
class Computation {
 public:
  // `seed` is that of the operator's random numbers, if it draws any.
  Computation(const Operator& op, Capture&& capture, std::optional<uint64_t> seed)
      : op_(op), capture_(std::move(capture)), seed_(seed) {}

  void run();         // small: compute
  void invalidate();  // large or impossible: unknown, or benign
  Capture& capture() { return capture_; }

 private:
  enum class Outcome { done, impossible, refused };  // refused: these values are not for this operator

  using Tensors = c10::SmallVector<at::Tensor, 6>;  // one for each record of a tensor argument

  bool read_inputs();  // true if some are not known
  Tensors aliases() const;
  torch::jit::Stack arguments(const Tensors& tensors) const;
  Outcome call(torch::jit::Stack& stack, bool tainted) const;
  std::optional<at::Generator> generator() const;
  void store(const torch::jit::Stack& stack, bool tainted);
  void mark_written(values::State state);
  void mark_moved();

  const Operator& op_;
  Capture capture_;
  std::optional<uint64_t> seed_;
};

}  // namespace phantora::aten
