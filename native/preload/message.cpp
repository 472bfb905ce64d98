#include "message.h"

#include <stdio.h>
#include <unistd.h>

namespace phantora::preload {

void fail(const char* what, const char* object, const char* hint) {
  constexpr int exit_code = 70;
  dprintf(STDERR_FILENO, "phantora: %s: %s\n  hint: %s\n", what, object, hint);
  _exit(exit_code);
}

}  // namespace phantora::preload
