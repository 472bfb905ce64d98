#include "cudnn/handle.h"

#include <cstddef>

using phantora::cudnn::Handle;
using phantora::cudnn::Status;

extern "C" {

Status cudnnCreate(Handle** out) {
  if (out == nullptr) return Status::null_pointer;
  *out = new Handle;
  return Status::success;
}

Status cudnnDestroy(Handle* handle) {
  delete handle;
  return Status::success;
}

Status cudnnSetStream(Handle* handle, void* stream) {
  if (handle == nullptr) return Status::not_initialized;
  handle->stream = stream;
  return Status::success;
}

Status cudnnGetStream(Handle* handle, void** stream) {
  if (handle == nullptr) return Status::not_initialized;
  if (stream == nullptr) return Status::null_pointer;
  *stream = handle->stream;
  return Status::success;
}

Status cudnnGetProperty(int property, int* value) {
  constexpr int version[] = {9, 24, 0};  // of the cuDNN that PyTorch's CUDA 13 wheels take
  if (property < 0 || property > 2 || value == nullptr) return Status::bad_param;
  *value = version[property];
  return Status::success;
}

const char* cudnnGetErrorString(Status status) {
  switch (status) {
    case Status::success:
      return "CUDNN_STATUS_SUCCESS";
    case Status::not_initialized:
      return "CUDNN_STATUS_NOT_INITIALIZED";
    case Status::bad_param:
      return "CUDNN_STATUS_BAD_PARAM";
    case Status::null_pointer:
      return "CUDNN_STATUS_BAD_PARAM_NULL_POINTER";
    case Status::not_finalized:
      return "CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED";
    case Status::size_insufficient:
      return "CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT";
    case Status::attribute_type:
      return "CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE";
    case Status::descriptor_type:
      return "CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE";
    case Status::not_supported:
      return "CUDNN_STATUS_NOT_SUPPORTED";
  }
  return "CUDNN_STATUS_UNKNOWN";
}

void cudnnGetLastErrorString(char* message, size_t size) {
  if (message != nullptr && size > 0) message[0] = '\0';  // statuses say all that we know
}

}  // extern "C"
