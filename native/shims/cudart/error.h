// The calling thread's last error.
#pragma once
#include "cudart/types.h"
#include "phantora/capture.h"

namespace phantora::cudart {

// Remembers an error for cudaGetLastError and hands it on.
Status done(Status status);

// The same for what a stream capture says.
Status done(captures::Error error);

// done(), or at the end of the process the error by which CUDA tells threads that still run to stop.
Status if_running(Status status);

}  // namespace phantora::cudart
