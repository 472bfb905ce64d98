// Kernels and variables that the program's own code registered, by the host address that stands for them.
#pragma once
#include <cstddef>

#include "cudart/types.h"
#include "phantora/kernels.h"

namespace phantora::cudart {

// The kernel behind a host address or a cudaKernel_t; null if there is none.
kernels::Kernel* find_kernel(const void* function);

// The device memory of a registered variable, on the current device; null if there is no such variable.
void* symbol_address(const void* symbol, size_t* bytes);

}  // namespace phantora::cudart
