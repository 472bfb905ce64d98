// Memory of other processes of the node.
#include "phantora/ipc.h"

#include "cudart/error.h"
#include "phantora/recorder.h"

namespace phantora::cudart {

extern "C" {

Status cudaIpcGetMemHandle(ipc::MemoryHandle* handle, void* pointer) {
  if (!handle) return done(Status::invalid_value);
  recorder::charge_call();
  return done(ipc::export_memory(pointer, handle) ? Status::success : Status::invalid_value);
}

Status cudaIpcOpenMemHandle(void** pointer, ipc::MemoryHandle handle, unsigned) {
  if (!pointer) return done(Status::invalid_value);
  recorder::charge_call();
  switch (ipc::open_memory(handle, pointer)) {
    case ipc::Opened::in_own_process:
      return done(Status::device_uninitialized);
    case ipc::Opened::no_such_memory:
      return done(Status::invalid_value);
    case ipc::Opened::yes:
      break;
  }
  return Status::success;
}

Status cudaIpcCloseMemHandle(void* pointer) {
  return done(ipc::close_memory(pointer) ? Status::success : Status::invalid_value);
}

}  // extern "C"

}  // namespace phantora::cudart
