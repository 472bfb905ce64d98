// Stands before an operator's CUDA kernel.
#pragma once
#include <memory>

#include "operator.h"

namespace phantora::aten {

// Calls the CUDA kernel, which allocates and launches as always, as the owner of what it launches, and then gives the
// outputs their values: see Policy.
//
// An operator that changes its arguments is computed as a whole: what its kernel calls within leaves device memory
// alone meanwhile. One that only returns something new, or fills an out= apart from what it reads, may be computed
// after the fact, so what it calls within is true by itself, and may be read by its kernel; when that was all that it
// did, nothing is left to do.
class Override : public c10::OperatorKernel {
 public:
  explicit Override(const c10::OperatorHandle& handle) : op_(handle) {}

  void operator()(const c10::OperatorHandle& handle, c10::DispatchKeySet keys, torch::jit::Stack* stack);

  const Operator& op() const { return op_; }

 private:
  void call_original(const c10::OperatorHandle& handle, c10::DispatchKeySet keys, torch::jit::Stack* stack) const {
    op_.cuda_kernel.callBoxed(handle, keys, stack);
  }

  Operator op_;
};

}  // namespace phantora::aten
