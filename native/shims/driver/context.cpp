// Contexts: each device has its primary one, and a thread's current context is that of its current device.
#include <vector>

#include "driver/types.h"
#include "phantora/capture.h"
#include "phantora/config.h"
#include "phantora/device.h"
#include "phantora/recorder.h"

namespace phantora::driver {

namespace {

// A context is the address of its device's entry.
std::vector<Device>& contexts() {
  static auto* table = [] {
    auto* devices = new std::vector<Device>(device::count());
    for (int i = 0; i < device::count(); ++i) (*devices)[i] = i;
    return devices;
  }();
  return *table;
}

Context context_of(Device device) { return &contexts()[device]; }

bool is_context(Context context) {
  auto* entry = static_cast<Device*>(context);
  return entry >= contexts().data() && entry < contexts().data() + contexts().size();
}

bool exists(Device device) { return device >= 0 && device < device::count(); }

thread_local std::vector<Device> pushed;

}  // namespace

extern "C" {

Status cuCtxGetCurrent(Context* context) {
  int device = device::current();
  *context = device::is_in_use(device) ? context_of(device) : nullptr;
  return Status::success;
}

Status cuCtxSetCurrent(Context context) {
  if (!context) return Status::success;
  if (!is_context(context)) return Status::invalid_context;
  device::set_current(*static_cast<Device*>(context));
  return Status::success;
}

Status cuCtxPushCurrent_v2(Context context) {
  if (!is_context(context)) return Status::invalid_context;
  pushed.push_back(device::current());
  device::set_current(*static_cast<Device*>(context));
  return Status::success;
}

Status cuCtxPopCurrent_v2(Context* context) {
  if (pushed.empty()) return Status::invalid_context;
  if (context) *context = context_of(device::current());
  device::set_current(pushed.back());
  pushed.pop_back();
  return Status::success;
}

Status cuCtxGetDevice(Device* device) {
  *device = device::current();
  return Status::success;
}

Status cuCtxGetFlags(unsigned* flags) {
  *flags = 0;
  return Status::success;
}

Status cuCtxGetApiVersion(Context, unsigned* version) {
  *version = PHANTORA_CUDA * 1000;
  return Status::success;
}

Status cuCtxSynchronize() {
  if (captures::forbids_unsafe()) return Status::stream_capture_unsupported;
  device::synchronize(device::current());
  return Status::success;
}

Status cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return Status::success;
}

// The GPUs of a node reach one another at any time.
Status cuCtxEnablePeerAccess(Context context, unsigned) {
  return is_context(context) ? Status::success : Status::invalid_context;
}

Status cuDevicePrimaryCtxRetain(Context* context, Device device) {
  if (!exists(device)) return Status::invalid_device;
  device::note_use(device);
  *context = context_of(device);
  return Status::success;
}

Status cuDevicePrimaryCtxRelease_v2(Device device) { return exists(device) ? Status::success : Status::invalid_device; }

Status cuDevicePrimaryCtxSetFlags_v2(Device device, unsigned) {
  return exists(device) ? Status::success : Status::invalid_device;
}

Status cuDevicePrimaryCtxGetState(Device device, unsigned* flags, int* active) {
  if (!exists(device)) return Status::invalid_device;
  if (flags) *flags = 0;
  if (active) *active = device::is_in_use(device);
  return Status::success;
}

}  // extern "C"

}  // namespace phantora::driver
