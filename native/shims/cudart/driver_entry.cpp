// The driver's functions, for those who ask the runtime for them.
#include <dlfcn.h>

#include <string>

#include "cudart/error.h"
#include "phantora/recorder.h"

namespace phantora::cudart {

namespace {

using GetProcAddress = int (*)(const char*, void**, int, uint64_t, EntryPointQuery*);

// Our libcuda lies beside this library.
GetProcAddress driver_lookup() {
  Dl_info self;
  dladdr(reinterpret_cast<void*>(&driver_lookup), &self);
  std::string path = self.dli_fname;
  path = path.substr(0, path.rfind('/') + 1) + "libcuda.so.1";
  void* driver = dlopen(path.c_str(), RTLD_LAZY | RTLD_GLOBAL);
  if (!driver) {
    fail("cannot open the emulated driver: " + std::string(dlerror()),
         "reinstall phantora; `phantora doctor` may help");
  }
  return reinterpret_cast<GetProcAddress>(dlsym(driver, "cuGetProcAddress_v2"));
}

}  // namespace

extern "C" {

Status cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned version, unsigned long long flags,
                                        EntryPointQuery* result) {
  static const GetProcAddress lookup = driver_lookup();
  if (!symbol || !function) return done(Status::invalid_value);
  EntryPointQuery query = EntryPointQuery::symbol_not_found;
  lookup(symbol, function, static_cast<int>(version), flags, &query);
  if (result) *result = query;
  // Who asks for the query result takes "not found" from there.
  if (query == EntryPointQuery::success || result) return Status::success;
  return done(Status::symbol_not_found);
}

Status cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags, EntryPointQuery* result) {
  return cudaGetDriverEntryPointByVersion(symbol, function, PHANTORA_CUDA * 1000, flags, result);
}

}  // extern "C"

}  // namespace phantora::cudart
