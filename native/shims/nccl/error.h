// Errors travel as exceptions inside and as result codes at the interface; ncclGetLastError shows the last one's text.
#pragma once
#include <exception>
#include <new>
#include <stdexcept>
#include <string>

#include "nccl/types.h"

namespace phantora::nccl {

struct Error : std::runtime_error {
  Error(Result code, const std::string& what) : std::runtime_error(what), result(code) {}
  Result result;
};

[[noreturn]] inline void reject(const std::string& what) { throw Error(Result::invalid_argument, what); }

// Another member did not call the same. The simulator has heard of both calls and knows who else takes part, so its
// word, which ends this rank, comes first; without a simulator, or if it stays silent, this one does.
[[noreturn]] void disagree(const std::string& what, const std::string& hint);

void remember_error(const char* function, const char* what);
const char* last_error();  // "" if there was none
const char* describe(Result result);

// Runs `body`, which returns a Result; what it throws becomes the function's result.
template <class Body>
Result guarded(const char* function, const Body& body) noexcept {
  try {
    return body();
  } catch (const Error& error) {
    remember_error(function, error.what());
    return error.result;
  } catch (const std::bad_alloc& error) {
    remember_error(function, error.what());
    return Result::system_error;
  }
}

}  // namespace phantora::nccl
