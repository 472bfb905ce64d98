// What can be asked of the library itself.
#include "nccl/communicator.h"
#include "nccl/error.h"
#include "nccl/types.h"
#include "phantora/export.h"

using namespace phantora::nccl;

extern "C" {

PHANTORA_EXPORT Result ncclGetVersion(int* version) {
  return guarded(__func__, [&] {
    if (version == nullptr) reject("version is NULL");
    *version = version_code;
    return Result::success;
  });
}

PHANTORA_EXPORT const char* ncclGetErrorString(Result result) { return describe(result); }

PHANTORA_EXPORT const char* ncclGetLastError(Handle) { return last_error(); }

PHANTORA_EXPORT void ncclResetDebugInit() {}  // NCCL_DEBUG is not read

}  // extern "C"
