// dlopen, seen by the whole process: whoever opens a library that needs one of NVIDIA's gets our set first, and a path
// that ends in one of their names gives ours.
//
// The real dlopen looks at its return address to find the caller's RPATH and namespace. It must therefore see the
// original caller's: it is reached by a jump (a sibling call), and this frame is gone by then.
#include "dlopen.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "elf_file.h"
#include "library_set.h"
#include "message.h"

namespace phantora::preload {

namespace {

using Dlopen = void* (*)(const char*, int);

Dlopen next_dlopen() {
  static Dlopen next = reinterpret_cast<Dlopen>(dlsym(RTLD_NEXT, "dlopen"));
  return next;
}

bool is_ours(const char* soname, void*) { return our_library(soname) != nullptr; }

const char* base_name(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

void refuse_deepbind(const char* path, int mode) {
  if (!(mode & RTLD_DEEPBIND)) return;
  fail("a library that uses CUDA was opened with RTLD_DEEPBIND, which hides the emulated functions from it", path,
       "open it without (sys.setdlopenflags, ctypes mode, torch.utils of the framework that does)");
}

// What to open instead of `path`; opens our set where it is needed.
const char* prepare(const char* path, int mode) {
  if (!path || !getenv("PHANTORA_RUN_DIR")) return path;
  const char* ours = our_library(base_name(path));
  if (!ours && !(strchr(path, '/') && any_needed(path, is_ours, nullptr))) return path;
  refuse_deepbind(path, mode);
  if (!are_open()) open_all();
  return ours ? ours : path;
}

}  // namespace

void* real_dlopen(const char* path, int mode) { return next_dlopen()(path, mode); }

}  // namespace phantora::preload

extern "C" __attribute__((visibility("default"))) void* dlopen(const char* path, int mode) {
  const char* chosen = phantora::preload::prepare(path, mode);
  return phantora::preload::next_dlopen()(chosen, mode);
}
