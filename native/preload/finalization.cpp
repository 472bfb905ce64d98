// A thread that wants Python's lock while the interpreter ends is sent to pthread_exit by CPython before 3.14. That
// unwinds it, and where one of PyTorch's or pybind11's frames may not throw, the whole process aborts: a thread of the
// autograd engine or of gloo is enough that drops its last Python object a little late, on a busy machine more often.
// Here such a thread waits for the end of the process, as from 3.14 on: python/cpython issue 87135.
#include <dlfcn.h>
#include <time.h>

namespace {

// If somebody waits for the thread, the process does not end. PyTorch waits for its own threads for 10 s, and goes on:
// a thread that left just before would abort it after all.
constexpr timespec patience = {.tv_sec = 30, .tv_nsec = 0};

bool is_python_ending(const void* caller) {
  void* function = dlsym(RTLD_DEFAULT, "Py_IsFinalizing");
  if (!function) function = dlsym(RTLD_DEFAULT, "_Py_IsFinalizing");  // before 3.13
  Dl_info python;
  Dl_info asking;
  if (!function || !dladdr(function, &python) || !dladdr(caller, &asking)) return false;
  return python.dli_fbase == asking.dli_fbase && reinterpret_cast<int (*)()>(function)();
}

}  // namespace

extern "C" __attribute__((visibility("default"), noreturn)) void pthread_exit(void* result) {
  if (is_python_ending(__builtin_return_address(0))) nanosleep(&patience, nullptr);
  reinterpret_cast<void (*)(void*)>(dlsym(RTLD_NEXT, "pthread_exit"))(result);
  __builtin_unreachable();
}
