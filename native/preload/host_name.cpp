// A rank sees its node's host name, and can resolve it: all nodes are this machine.
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

namespace {

// Null: the machine's own is shown.
const char* shown_name() {
  const char* name = getenv("PHANTORA_RUN_DIR") ? getenv("PHANTORA_HOSTNAME") : nullptr;
  return name && *name ? name : nullptr;
}

template <typename Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) int gethostname(char* name, size_t bytes) {
  const char* shown = shown_name();
  if (!shown) return next<int (*)(char*, size_t)>("gethostname")(name, bytes);
  size_t length = strlen(shown) + 1;
  memcpy(name, shown, length < bytes ? length : bytes);
  if (length <= bytes) return 0;
  errno = ENAMETOOLONG;
  return -1;
}

__attribute__((visibility("default"))) int uname(struct utsname* system) {
  int result = next<int (*)(struct utsname*)>("uname")(system);
  const char* shown = shown_name();
  if (result == 0 && shown) {
    strncpy(system->nodename, shown, sizeof system->nodename - 1);
    system->nodename[sizeof system->nodename - 1] = '\0';
  }
  return result;
}

__attribute__((visibility("default"))) int getaddrinfo(const char* node, const char* service, const addrinfo* hints,
                                                       addrinfo** result) {
  const char* shown = shown_name();
  const char* asked = shown && node && strcmp(node, shown) == 0 ? "127.0.0.1" : node;
  auto real = next<int (*)(const char*, const char*, const addrinfo*, addrinfo**)>("getaddrinfo");
  return real(asked, service, hints, result);
}

}  // extern "C"
