// Arithmetic on elements of NCCL's data types.
//
// A reduction over members 0 … n-1 is   finish(scale(x_0) ∘ scale(x_1) ∘ … ∘ scale(x_{n-1}))   from left to right,
// rounded to the data type after every step. As in NCCL, `average` scales by 1/n before the sum for floating-point
// types and divides the sum for integers, and a custom operation scales by its own scalar.
#pragma once
#include <cstddef>
#include <string_view>

#include "nccl/types.h"

namespace phantora::nccl {

size_t element_bytes(DataType type);
std::string_view name(DataType type);  // as PyTorch prints it, without "torch."
std::string_view name(RedOp op);

bool is_floating_point(DataType type);

// `values` point to `count` elements, in place; alignment does not matter.
void accumulate(DataType type, RedOp op, void* values, const void* others, size_t count);  // values ∘= others
void scale(DataType type, void* values, const void* scalar, size_t count);                 // values *= *scalar
void store_reciprocal(DataType type, int n, void* scalar);                                 // *scalar = 1/n
void divide(DataType type, void* values, int n, size_t count);                             // integers, towards zero

}  // namespace phantora::nccl
