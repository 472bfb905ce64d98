// The calling thread's last error.
#pragma once
#include "cudart/types.h"

namespace phantora::cudart {

// Remembers an error for cudaGetLastError and hands it on.
Status done(Status status);

}  // namespace phantora::cudart
