// Operators that read values in the middle, of which they make a decision: nonzero and unique the sizes of their
// outputs, equal its answer.
#pragma once
#include "capture.h"

namespace phantora::aten {

// The CUDA kernel would read a count back in the middle and allocate by it. Here the values come first: the stream is
// drained, the CPU computes, and outputs of the right sizes are allocated and filled. One launch and one
// synchronisation stand for the kernel's. From a large or unknown input, what zeros would give: nothing is nonzero, all
// are the same.
void read_back(const Operator& op, Capture& capture, torch::jit::Stack& stack);

}  // namespace phantora::aten
