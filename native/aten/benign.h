// What stands in for values that are not known, where plain zeros would lead the script astray.
#pragma once
#include "capture.h"

namespace phantora::aten {

// After a computation from values that are not all known: its outputs are stored; infinities and NaN become zeros, and
// what the operator's `benign` says is applied.
void soften_outputs(const Operator& op, const Capture& capture);

// In place of a computation: stores the outputs that `benign` speaks of, as tainted. The others stay as they are.
void store_benign_outputs(const Operator& op, const Capture& capture);

}  // namespace phantora::aten
