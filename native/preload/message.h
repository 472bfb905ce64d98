// Errors of the preloaded library: it has neither the runtime nor C++'s library to lean on.
#pragma once

namespace phantora::preload {

[[noreturn]] void fail(const char* what, const char* object, const char* hint);

}  // namespace phantora::preload
