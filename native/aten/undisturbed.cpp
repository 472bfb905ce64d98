#include "undisturbed.h"

namespace phantora::aten {
namespace {

class Silence : public c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

// What stays reachable: the backends, and what decides how tensors are stored.
c10::DispatchKeySet everything_above_backends() {
  using c10::DispatchKey;
  return c10::DispatchKeySet(c10::DispatchKeySet::FULL) -
         c10::DispatchKeySet({DispatchKey::Dense, DispatchKey::Sparse, DispatchKey::SparseCsr,
                              DispatchKey::BackendSelect, DispatchKey::Conjugate, DispatchKey::Negative});
}

Silence silence;

}  // namespace

Undisturbed::Undisturbed()
    : keys_(c10::DispatchKeySet(c10::DispatchKey::BackendSelect), everything_above_backends()),
      no_warnings_(&silence) {}

}  // namespace phantora::aten
