// Run scripts often set PYTHONPATH anew (`PYTHONPATH=$REPO torchrun …`), which would drop the folder whose
// sitecustomize.py every Python of the job has to run. It is put back before the program reads its environment.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

namespace {

bool holds(const char* path, const char* folder) {
  size_t length = strlen(folder);
  for (const char* entry = path; entry; entry = strchr(entry, ':')) {
    if (*entry == ':') ++entry;
    if (strncmp(entry, folder, length) == 0 && (entry[length] == ':' || entry[length] == '\0')) return true;
  }
  return false;
}

__attribute__((constructor)) void put_start_up_folder_back() {
  const char* folder = getenv("PHANTORA_BOOTSTRAP_DIR");
  const char* path = getenv("PYTHONPATH");
  if (!folder || (path && holds(path, folder))) return;
  if (!path || !*path) {
    setenv("PYTHONPATH", folder, 1);
    return;
  }
  size_t bytes = strlen(folder) + strlen(path) + 2;
  char* joined = static_cast<char*>(malloc(bytes));
  if (!joined) return;
  snprintf(joined, bytes, "%s:%s", folder, path);
  setenv("PYTHONPATH", joined, 1);
  free(joined);
}

}  // namespace
