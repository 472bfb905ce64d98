// Memory of other processes of the node.
#include "phantora/ipc.h"

#include "driver/types.h"
#include "phantora/recorder.h"

namespace phantora::driver {

extern "C" {

Status cuIpcGetMemHandle(ipc::MemoryHandle* handle, DevicePointer pointer) {
  if (!handle) return Status::invalid_value;
  recorder::charge_call();
  return ipc::export_memory(to_pointer(pointer), handle) ? Status::success : Status::invalid_value;
}

Status cuIpcOpenMemHandle_v2(DevicePointer* pointer, ipc::MemoryHandle handle, unsigned) {
  if (!pointer) return Status::invalid_value;
  recorder::charge_call();
  void* opened = nullptr;
  switch (ipc::open_memory(handle, &opened)) {
    case ipc::Opened::in_own_process:
      return Status::invalid_context;
    case ipc::Opened::no_such_memory:
      return Status::invalid_value;
    case ipc::Opened::yes:
      break;
  }
  *pointer = to_address(opened);
  return Status::success;
}

Status cuIpcCloseMemHandle(DevicePointer pointer) {
  return ipc::close_memory(to_pointer(pointer)) ? Status::success : Status::invalid_value;
}

}  // extern "C"

}  // namespace phantora::driver
