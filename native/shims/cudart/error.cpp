#include "cudart/error.h"

#include <chrono>
#include <thread>
#include <utility>

#include "phantora/recorder.h"

namespace phantora::cudart {

namespace {

constexpr auto longest_exit = std::chrono::seconds(10);

thread_local Status last_error = Status::success;

struct Description {
  Status status;
  const char* name;
  const char* text;
};

// What this library returns, and what programs print.
constexpr Description descriptions[] = {
    {Status::success, "cudaSuccess", "no error"},
    {Status::invalid_value, "cudaErrorInvalidValue", "invalid argument"},
    {Status::memory_allocation, "cudaErrorMemoryAllocation", "out of memory"},
    {Status::cudart_unloading, "cudaErrorCudartUnloading", "driver shutting down"},
    {Status::invalid_configuration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {Status::invalid_symbol, "cudaErrorInvalidSymbol", "invalid device symbol"},
    {Status::invalid_memcpy_direction, "cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"},
    {Status::invalid_device_function, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {Status::invalid_device, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {Status::device_uninitialized, "cudaErrorDeviceUninitialized", "invalid device context"},
    {Status::unsupported_limit, "cudaErrorUnsupportedLimit", "limit is not supported on this architecture"},
    {Status::file_not_found, "cudaErrorFileNotFound", "file not found"},
    {Status::invalid_resource_handle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {Status::illegal_state, "cudaErrorIllegalState", "the operation cannot be performed in the present state"},
    {Status::symbol_not_found, "cudaErrorSymbolNotFound", "named symbol not found"},
    {Status::not_ready, "cudaErrorNotReady", "device not ready"},
    {Status::peer_access_already_enabled, "cudaErrorPeerAccessAlreadyEnabled", "peer access is already enabled"},
    {Status::peer_access_not_enabled, "cudaErrorPeerAccessNotEnabled", "peer access has not been enabled"},
    {Status::host_memory_already_registered, "cudaErrorHostMemoryAlreadyRegistered",
     "part or all of the requested memory range is already mapped"},
    {Status::host_memory_not_registered, "cudaErrorHostMemoryNotRegistered",
     "pointer does not correspond to a registered memory region"},
    {Status::launch_out_of_resources, "cudaErrorLaunchOutOfResources", "too many resources requested for launch"},
    {Status::cooperative_launch_too_large, "cudaErrorCooperativeLaunchTooLarge",
     "too many blocks in cooperative launch"},
    {Status::not_supported, "cudaErrorNotSupported", "operation not supported"},
    {Status::stream_capture_unsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {Status::stream_capture_invalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {Status::stream_capture_merge, "cudaErrorStreamCaptureMerge",
     "operation would result in a merge of separate capture sequences"},
    {Status::stream_capture_unmatched, "cudaErrorStreamCaptureUnmatched",
     "capture was not ended in the same stream as it began"},
    {Status::stream_capture_unjoined, "cudaErrorStreamCaptureUnjoined", "capturing stream has unjoined work"},
    {Status::stream_capture_isolation, "cudaErrorStreamCaptureIsolation",
     "dependency created on uncaptured work in another stream"},
    {Status::captured_event, "cudaErrorCapturedEvent",
     "operation not permitted on an event last recorded in a capturing stream"},
    {Status::stream_capture_wrong_thread, "cudaErrorStreamCaptureWrongThread",
     "attempt to terminate a thread-local capture sequence from another thread"},
    {Status::graph_update_failure, "cudaErrorGraphExecUpdateFailure",
     "the graph update was not performed because it included changes which violated constraints specific to "
     "instantiated graph update"},
    {Status::invalid_cluster_size, "cudaErrorInvalidClusterSize", "cluster misconfiguration"},
};

const Description* describe(Status status) {
  for (const Description& description : descriptions) {
    if (description.status == status) return &description;
  }
  return nullptr;
}

}  // namespace

Status done(Status status) {
  if (status != Status::success) last_error = status;
  return status;
}

Status done(captures::Error error) { return done(static_cast<Status>(error)); }

Status if_running(Status status) {
  if (!recorder::has_ended()) return done(status);
  // PyTorch's watchdog, told so while its own globals are being destroyed, may crash: it is held until the process is
  // gone.
  if (recorder::is_observer()) std::this_thread::sleep_for(longest_exit);
  return done(Status::cudart_unloading);
}

extern "C" {

Status cudaGetLastError() { return std::exchange(last_error, Status::success); }
Status cudaPeekAtLastError() { return last_error; }

const char* cudaGetErrorName(Status status) {
  const Description* description = describe(status);
  return description ? description->name : "unrecognized error code";
}

const char* cudaGetErrorString(Status status) {
  const Description* description = describe(status);
  return description ? description->text : "unrecognized error code";
}

}  // extern "C"

}  // namespace phantora::cudart
