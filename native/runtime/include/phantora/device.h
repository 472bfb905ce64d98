// The emulated devices of this process, and the calling thread's current one.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "phantora/export.h"

namespace phantora {
namespace device PHANTORA_EXPORT {

int count();
int current();                 // of the calling thread; 0 at first
bool set_current(int device);  // false if there is no such device

// Whether this process has used the device, so that it has a context there.
bool is_in_use(int device);
void note_use(int device);

// cudaDeviceAttr and CUdevice_attribute share their numbers. Nothing for a number that CUDA 13 does not define.
std::optional<int> attribute(int number);

struct Uuid {
  unsigned char bytes[16];
};
Uuid uuid(int device);
int pci_bus(int device);             // PCI address pci_bus:00.0 in domain 0
std::string pci_bus_id(int device);  // "0000:1b:00.0"

// cudaDeviceSynchronize: in the simulation, and for values.
void synchronize(int device);

}  // namespace device PHANTORA_EXPORT
}  // namespace phantora
