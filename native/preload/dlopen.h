// The dlopen behind ours.
#pragma once

namespace phantora::preload {

void* real_dlopen(const char* path, int mode);

}  // namespace phantora::preload
