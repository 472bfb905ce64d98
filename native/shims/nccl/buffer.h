// Checks of what a caller hands over.
#pragma once
#include <cstddef>

#include "nccl/communicator.h"
#include "nccl/types.h"

namespace phantora::nccl {

void check_type(DataType type);
void check_member(const Communicator& communicator, int member, const char* what);
// Device memory of the communicator's device, or pinned or registered host memory. Empty buffers may be anything.
void check_buffer(const Communicator& communicator, const void* buffer, size_t bytes, const char* what);

}  // namespace phantora::nccl
