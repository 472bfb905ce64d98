// How a rank ends when it cannot go on: one message, the script's own stack where there is one, code 70.
#include <dlfcn.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <memory>
#include <string>
#include <thread>

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

template <typename Function>
Function* python_function(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

// Python keeps the youngest thread first; the oldest is the main thread.
void* main_python_thread() {
  auto* interpreter = python_function<void*()>("PyInterpreterState_Main");
  auto* head = python_function<void*(void*)>("PyInterpreterState_ThreadHead");
  auto* next = python_function<void*(void*)>("PyThreadState_Next");
  if (!interpreter || !head || !next || !interpreter()) return nullptr;
  void* thread = head(interpreter());
  for (void* older = thread; older; older = next(older)) thread = older;
  return thread;
}

// The Python stack of the calling thread, or, if that is one of the runtime's own, of the main thread: it says which
// line of the script led here. As faulthandler does, this reads a running interpreter.
void print_python_stack() {
  auto* state = python_function<void*()>("PyGILState_GetThisThreadState");
  auto* dump = python_function<void(int fd, void* thread_state)>("_Py_DumpTraceback");
  if (!state || !dump) return;
  void* thread = state();
  if (!thread) thread = main_python_thread();
  if (thread) dump(STDERR_FILENO, thread);
}

// What was recorded up to here, the peaks of memory above all, is the report's. By another thread: this one may hold
// the recorder's lock.
void send_records() {
  constexpr auto patience = std::chrono::milliseconds(200);
  auto sent = std::make_shared<std::promise<void>>();
  std::thread([sent] {
    recorder::become_observer();
    recorder::flush();
    sent->set_value();
  }).detach();
  sent->get_future().wait_for(patience);
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
  if (recorder::active()) send_records();
  // Not exit(): other threads are in any state, and their handlers could wait for one that this thread holds.
  _exit(exit_code);
}

void end_without_a_word() {
  std::fflush(nullptr);
  _exit(exit_code);
}

void phantora_unsupported(const char* library, const char* function) {
  fail(std::string(function) + " of " + library + " is not emulated",
       "phantora stops here because going on would give wrong results; `phantora doctor` lists what is emulated, and a "
       "framework option that avoids this feature may help");
}

}  // namespace phantora
