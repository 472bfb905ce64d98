// Device memory seen from the CPU: tensors over it, and the states of their bytes.
#pragma once
#include "capture.h"
#include "phantora/values.h"

namespace phantora::aten {

// A CPU tensor over a record's memory. The memory must outlive it.
at::Tensor host_alias(const Capture& capture, const TensorRecord& t);

// Stores zeros where nothing is stored, so that the record can be read. True if some of it is not known.
bool make_readable(const Capture& capture, const TensorRecord& t);

// True where an element is not known; with the sizes and the strides of the tensor.
at::Tensor unknown_elements(const Capture& capture, const TensorRecord& t);

// Marks each element as known or tainted.
void mark_elements(const Capture& capture, const TensorRecord& t, const at::Tensor& unknown);

// Marks exactly the bytes of the record; where that would be too many pieces, all from its first to its last as
// unknown.
void mark(const Capture& capture, const TensorRecord& t, values::State state);

}  // namespace phantora::aten
