#include "library_set.h"

#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "dlopen.h"
#include "message.h"

namespace phantora::preload {

namespace {

constexpr int max_libraries = 32;

struct Set {
  int count = 0;
  char paths[max_libraries][PATH_MAX];
};

constinit Set set{};  // other libraries' constructors, which come before ours, open libraries
pthread_once_t listed = PTHREAD_ONCE_INIT;
pthread_once_t opened = PTHREAD_ONCE_INIT;
bool open_done = false;

const char* base_name(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

void list_libraries() {
  Dl_info self;
  if (!dladdr(reinterpret_cast<void*>(&list_libraries), &self)) return;
  char folder[PATH_MAX];
  int length = static_cast<int>(base_name(self.dli_fname) - self.dli_fname);
  snprintf(folder, sizeof folder, "%.*scuda13", length, self.dli_fname);
  DIR* entries = opendir(folder);
  if (!entries) fail("the emulated CUDA libraries are missing", folder, "reinstall phantora");
  while (const dirent* entry = readdir(entries)) {
    if (!strstr(entry->d_name, ".so") || set.count == max_libraries) continue;
    int written = snprintf(set.paths[set.count], PATH_MAX, "%s/%s", folder, entry->d_name);
    if (written > 0 && written < PATH_MAX) ++set.count;
  }
  closedir(entries);
}

void open_each() {
  for (int i = 0; i < set.count; ++i) {
    if (!real_dlopen(set.paths[i], RTLD_LAZY | RTLD_GLOBAL)) {
      fail("cannot open an emulated CUDA library", dlerror(), "reinstall phantora");
    }
  }
  open_done = true;
}

}  // namespace

const char* our_library(const char* soname) {
  pthread_once(&listed, list_libraries);
  for (int i = 0; i < set.count; ++i) {
    if (strcmp(base_name(set.paths[i]), soname) == 0) return set.paths[i];
  }
  return nullptr;
}

void open_all() {
  pthread_once(&listed, list_libraries);
  pthread_once(&opened, open_each);
}

bool are_open() { return open_done; }

}  // namespace phantora::preload
