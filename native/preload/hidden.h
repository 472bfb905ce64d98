#pragma once

namespace phantora::preload {

// The function of a loaded library that a name of ours hides. Libraries of PyTorch are opened for themselves alone, so
// RTLD_NEXT would not see them. Null: the library is not loaded, or has no such function.
void* hidden(const char* library, const char* name);

}  // namespace phantora::preload
