// Finding the driver's functions by name.
#include <algorithm>
#include <cstring>
#include <string>

#include "driver/types.h"
#include "function_table.h"

namespace phantora::driver {

namespace {

void* exact(const std::string& name) {
  const phantora_function* end = phantora_functions + phantora_function_count;
  const phantora_function* found =
      std::lower_bound(phantora_functions, end, name,
                       [](const phantora_function& row, const std::string& wanted) { return row.name < wanted; });
  return found != end && found->name == name ? found->address : nullptr;
}

// The newest version of a function: cuCtxCreate is answered with cuCtxCreate_v4.
void* newest(const std::string& name, const std::string& suffix) {
  constexpr int newest_version = 5;
  for (int version = newest_version; version >= 2; --version) {
    if (void* found = exact(name + "_v" + std::to_string(version) + suffix)) return found;
  }
  return exact(name + suffix);
}

}  // namespace

extern "C" {

Status cuGetProcAddress_v2(const char* symbol, void** function, int, uint64_t flags, EntryPointQuery* result) {
  if (!symbol || !function) return Status::invalid_value;
  *function = flags & entry_points_per_thread_stream ? newest(symbol, "_ptsz") : nullptr;
  if (!*function) *function = newest(symbol, "");
  if (result) *result = *function ? EntryPointQuery::success : EntryPointQuery::symbol_not_found;
  return *function || result ? Status::success : Status::not_found;
}

Status cuGetProcAddress(const char* symbol, void** function, int version, uint64_t flags) {
  return cuGetProcAddress_v2(symbol, function, version, flags, nullptr);
}

}  // extern "C"

}  // namespace phantora::driver
