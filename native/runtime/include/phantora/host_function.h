// Host functions in stream order (cudaLaunchHostFunc, callbacks): run on a thread of the runtime's, never on the
// caller's, since the caller may hold locks that the function takes.
#pragma once
#include <functional>

#include "phantora/export.h"
#include "phantora/recorder.h"

namespace phantora PHANTORA_EXPORT {

// What is issued on the stream afterwards waits for it.
void launch_host_function(StreamId stream, std::function<void()> function);

}  // namespace phantora PHANTORA_EXPORT
