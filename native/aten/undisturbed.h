// A thread's state for computing on the CPU by ourselves.
#pragma once
#include <ATen/record_function.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/Exception.h>

namespace phantora::aten {

// While one is alive, operators of this thread go straight to their backend: no autograd, autocast, modes or transforms
// of the script's, no profiling, no warnings.
class Undisturbed {
 public:
  Undisturbed();

 private:
  c10::impl::ForceDispatchKeyGuard keys_;
  at::DisableRecordFunctionGuard no_observers_;
  c10::WarningUtils::WarningHandlerGuard no_warnings_;
};

}  // namespace phantora::aten
