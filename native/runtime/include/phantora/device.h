// The emulated devices of this process, and the calling thread's current one.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "phantora/export.h"

namespace phantora {
namespace device PHANTORA_EXPORT {

// Ordinals are the process's own: CUDA_VISIBLE_DEVICES chooses and orders them among the node's, the physical ones.
int count();
int current();                 // of the calling thread; 0 at first
bool set_current(int device);  // false if there is no such device
int physical_count();
int physical(int device);

// Whether this process has used the device, so that it has a context there.
bool is_in_use(int device);
void note_use(int device);

// cudaDeviceAttr and CUdevice_attribute share their numbers. Nothing for a number that CUDA 13 does not define.
std::optional<int> attribute(int number);

struct Uuid {
  unsigned char bytes[16];
};
Uuid uuid_of_physical(int physical);
int pci_bus_of_physical(int physical);             // PCI address bus:00.0 in domain 0
std::string pci_bus_id_of_physical(int physical);  // "0000:1B:00.0"
inline Uuid uuid(int device) { return uuid_of_physical(physical(device)); }
inline int pci_bus(int device) { return pci_bus_of_physical(physical(device)); }
inline std::string pci_bus_id(int device) { return pci_bus_id_of_physical(physical(device)); }

// cudaDeviceSynchronize: in the simulation, and for values.
void synchronize(int device);

}  // namespace device PHANTORA_EXPORT
}  // namespace phantora
