// The table of all functions of one emulated library, generated from native/spec (hidden in that library).
// cudaGetDriverEntryPoint and cuGetProcAddress answer from libcuda's.
#pragma once
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum phantora_function_policy {
  phantora_function_emulated,
  phantora_function_constant,
  phantora_function_unsupported,
};

struct phantora_function {
  const char* name;
  void* address;
  enum phantora_function_policy policy;
};

extern const struct phantora_function phantora_functions[];  // sorted by name (strcmp), ended by a null name
extern const size_t phantora_function_count;                 // without the ending one

#ifdef __cplusplus
}
#else
// recorder.h declares it for C++: ends the rank with the name of the function, its library and a hint.
_Noreturn void phantora_unsupported(const char* library, const char* function);
#endif
