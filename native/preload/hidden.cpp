#include "hidden.h"

#include <dlfcn.h>

namespace phantora::preload {

void* hidden(const char* library, const char* name) {
  void* loaded = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  return loaded ? dlsym(loaded, name) : nullptr;
}

}  // namespace phantora::preload
