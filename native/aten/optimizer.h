// Which optimizer steps.
#pragma once
#include <cstdint>

namespace phantora::aten {

// A number for the optimizer whose step() the calling thread is in, from 1 in order of their first steps; 0 if it
// cannot be told.
uint64_t stepping_optimizer();

}  // namespace phantora::aten
