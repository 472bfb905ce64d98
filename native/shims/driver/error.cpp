#include "driver/types.h"

namespace phantora::driver {

namespace {

struct Description {
  Status status;
  const char* name;
  const char* text;
};

constexpr Description descriptions[] = {
    {Status::success, "CUDA_SUCCESS", "no error"},
    {Status::invalid_value, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {Status::out_of_memory, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {Status::not_initialized, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {Status::invalid_device, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {Status::invalid_image, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {Status::invalid_context, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {Status::peer_access_already_enabled, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access is already enabled"},
    {Status::peer_access_not_enabled, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", "peer access has not been enabled"},
    {Status::host_memory_already_registered, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
     "part or all of the requested memory range is already mapped"},
    {Status::host_memory_not_registered, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
     "pointer does not correspond to a registered memory region"},
    {Status::file_not_found, "CUDA_ERROR_FILE_NOT_FOUND", "file not found"},
    {Status::invalid_handle, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {Status::not_found, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {Status::not_ready, "CUDA_ERROR_NOT_READY", "device not ready"},
    {Status::not_permitted, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted"},
    {Status::launch_out_of_resources, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
    {Status::cooperative_launch_too_large, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE",
     "too many blocks in cooperative launch"},
    {Status::not_supported, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {Status::invalid_cluster_size, "CUDA_ERROR_INVALID_CLUSTER_SIZE", "cluster misconfiguration"},
};

Status find(Status status, const char** out, const char* Description::* field) {
  if (!out) return Status::invalid_value;
  for (const Description& description : descriptions) {
    if (description.status != status) continue;
    *out = description.*field;
    return Status::success;
  }
  *out = nullptr;
  return Status::invalid_value;
}

}  // namespace

extern "C" {

Status cuGetErrorName(Status status, const char** name) { return find(status, name, &Description::name); }
Status cuGetErrorString(Status status, const char** text) { return find(status, text, &Description::text); }

// The driver's log of errors: nothing is ever written to it.
Status cuLogsRegisterCallback(void*, void*, void** handle) {
  static char log;
  if (handle) *handle = &log;
  return Status::success;
}

Status cuLogsUnregisterCallback(void*) { return Status::success; }

}  // extern "C"

}  // namespace phantora::driver
