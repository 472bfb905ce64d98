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

  void run();          // small: compute
  void invalidate();   // large or impossible: unknown, or benign
  Capture& capture() { return capture_; }

 private:
  bool read_inputs();  // true if some are not known
  torch::jit::Stack arguments() const;
  bool call(torch::jit::Stack& stack);
  void store(const torch::jit::Stack& stack, bool tainted);
  void soften();       // makes tainted outputs benign
  void mark_written(values::State state);

  const Operator& op_;
  Capture capture_;
  std::optional<uint64_t> seed_;
};

// Runs a CPU operator undisturbed: no autograd, modes, autocast, profiling or warnings of the script's. False: it cannot.
bool call_on_cpu(const Operator& op, torch::jit::Stack& stack);

}  // namespace phantora::aten
