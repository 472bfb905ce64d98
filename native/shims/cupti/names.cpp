// What numbers of CUPTI stand for.
#include "cupti/types.h"
#include "phantora/activity.h"

namespace phantora::cupti {

namespace {

constexpr int runtime_domain = 2;

const char* name_of(activity::Api api) {
  switch (api) {
    case activity::Api::memcpy_async:
      return "cudaMemcpyAsync_v3020";
    case activity::Api::memset_async:
      return "cudaMemsetAsync_v3020";
    case activity::Api::stream_synchronize:
      return "cudaStreamSynchronize_v3020";
    case activity::Api::event_synchronize:
      return "cudaEventSynchronize_v3020";
    case activity::Api::device_synchronize:
      return "cudaDeviceSynchronize_v3020";
    case activity::Api::launch_kernel:
      return "cudaLaunchKernel_v7000";
    case activity::Api::graph_launch:
      return "cudaGraphLaunch_v10000";
  }
  return nullptr;
}

}  // namespace

extern "C" {

Result cuptiGetCallbackName(int domain, uint32_t id, const char** name) {
  if (!name) return Result::invalid_parameter;
  *name = domain == runtime_domain ? name_of(static_cast<activity::Api>(id)) : nullptr;
  return *name ? Result::success : Result::invalid_parameter;
}

Result cuptiGetResultString(Result result, const char** text) {
  if (!text) return Result::invalid_parameter;
  switch (result) {
    case Result::success:
      *text = "CUPTI_SUCCESS";
      return Result::success;
    case Result::invalid_parameter:
      *text = "CUPTI_ERROR_INVALID_PARAMETER";
      return Result::success;
    case Result::max_limit_reached:
      *text = "CUPTI_ERROR_MAX_LIMIT_REACHED";
      return Result::success;
    case Result::queue_empty:
      *text = "CUPTI_ERROR_QUEUE_EMPTY";
      return Result::success;
  }
  return Result::invalid_parameter;
}

}  // extern "C"

}  // namespace phantora::cupti
