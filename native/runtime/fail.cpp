// How a rank ends when it cannot go on: one message, the script's own stack where there is one, code 70.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "phantora/environment.h"
#include "phantora/recorder.h"

namespace phantora {

namespace {

constexpr int exit_code = 70;

void print(const std::string& text) {
  size_t written = 0;
  while (written < text.size()) {
    ssize_t n = write(STDERR_FILENO, text.data() + written, text.size() - written);
    if (n <= 0) return;
    written += static_cast<size_t>(n);
  }
}

// The calling thread's Python stack, if this is a Python program: it says which line of the script led here.
void print_python_stack() {
  using State = void* (*)();
  using Dump = void (*)(int fd, void* thread_state);
  auto state = reinterpret_cast<State>(dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState"));
  auto dump = reinterpret_cast<Dump>(dlsym(RTLD_DEFAULT, "_Py_DumpTraceback"));
  if (!state || !dump) return;
  if (void* thread_state = state()) dump(STDERR_FILENO, thread_state);
}

std::string speaker() {
  const char* rank = std::getenv(environment::rank);
  return rank ? std::string("phantora: rank ") + rank + ": " : "phantora: ";
}

}  // namespace

void fail(const std::string& what, const std::string& hint) {
  std::fflush(nullptr);
  print(speaker() + what + "\n  hint: " + hint + "\n");
  print_python_stack();
  // Not exit(): other threads are in any state, and their handlers could wait for one that this thread holds.
  _exit(exit_code);
}

void phantora_unsupported(const char* library, const char* function) {
  fail(std::string(function) + " of " + library + " is not emulated",
       "phantora stops here because going on would give wrong results; `phantora doctor` lists what is emulated, and a "
       "framework option that avoids this feature may help");
}

}  // namespace phantora
