#include "phantora/device.h"

#include <cstring>

#include "driver/types.h"
#include "phantora/config.h"

namespace phantora::driver {

namespace {

bool exists(Device device) { return device >= 0 && device < device::count(); }

// Copies a text as the driver does: cut to the room there is.
Status copy_text(char* out, int bytes, const std::string& text) {
  if (!out || bytes <= 0) return Status::invalid_value;
  size_t kept = std::min<size_t>(text.size(), static_cast<size_t>(bytes) - 1);
  std::memcpy(out, text.data(), kept);
  out[kept] = '\0';
  return Status::success;
}

}  // namespace

extern "C" {

Status cuInit(unsigned flags) { return flags == 0 ? Status::success : Status::invalid_value; }

Status cuDriverGetVersion(int* version) {
  *version = PHANTORA_CUDA * 1000;
  return Status::success;
}

Status cuDeviceGetCount(int* count) {
  *count = device::count();
  return Status::success;
}

Status cuDeviceGet(Device* device, int ordinal) {
  if (!exists(ordinal)) return Status::invalid_device;
  *device = ordinal;
  return Status::success;
}

Status cuDeviceGetName(char* name, int bytes, Device device) {
  return exists(device) ? copy_text(name, bytes, config().device_name) : Status::invalid_device;
}

Status cuDeviceGetUuid_v2(Uuid* uuid, Device device) {
  if (!exists(device)) return Status::invalid_device;
  std::memcpy(uuid->bytes, device::uuid(device).bytes, sizeof uuid->bytes);
  return Status::success;
}

Status cuDeviceTotalMem_v2(size_t* bytes, Device device) {
  if (!exists(device)) return Status::invalid_device;
  *bytes = config().memory_bytes;
  return Status::success;
}

Status cuDeviceGetAttribute(int* value, int number, Device device) {
  constexpr int pci_bus_attribute = 33;
  if (!exists(device)) return Status::invalid_device;
  std::optional<int> found = device::attribute(number);
  if (!found) return Status::invalid_value;
  *value = number == pci_bus_attribute ? device::pci_bus(device) : *found;
  return Status::success;
}

Status cuDeviceComputeCapability(int* major, int* minor, Device device) {
  if (!exists(device)) return Status::invalid_device;
  *major = config().cc_major;
  *minor = config().cc_minor;
  return Status::success;
}

Status cuDeviceGetPCIBusId(char* id, int bytes, Device device) {
  return exists(device) ? copy_text(id, bytes, device::pci_bus_id(device)) : Status::invalid_device;
}

Status cuDeviceGetByPCIBusId(Device* device, const char* id) {
  for (int i = 0; i < device::count(); ++i) {
    if (device::pci_bus_id(i) != id) continue;
    *device = i;
    return Status::success;
  }
  return Status::invalid_device;
}

Status cuDeviceCanAccessPeer(int* can, Device device, Device peer) {
  if (!exists(device) || !exists(peer)) return Status::invalid_device;
  *can = device != peer;
  return Status::success;
}

}  // extern "C"

}  // namespace phantora::driver
