// NVML: the node's GPUs as the cluster file describes them. What is not measured on an emulated GPU (temperature,
// power, …) answers "not supported", as NVML does for hardware without a sensor; those are constants of the spec.
#include <strings.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "phantora/config.h"
#include "phantora/device.h"
#include "phantora/memory.h"

namespace phantora::nvml {

namespace {

enum class Status : int {
  success = 0,
  invalid_argument = 2,
  not_supported = 3,
  not_found = 6,
  insufficient_size = 7,
};

using Handle = void*;

struct Memory {
  unsigned long long total, free, used;
};

struct MemoryV2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};

struct Process {
  unsigned pid;
  unsigned long long used_bytes;
};

struct ProcessV3 {
  unsigned pid;
  unsigned long long used_bytes;
  unsigned gpu_instance, compute_instance;
};

struct PciInfo {
  char legacy_bus_id[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};

// A handle is the address of its device's entry.
std::vector<int>& devices() {
  static auto* table = [] {
    auto* all = new std::vector<int>(device::physical_count());
    for (size_t i = 0; i < all->size(); ++i) (*all)[i] = static_cast<int>(i);
    return all;
  }();
  return *table;
}

// -1: not a handle.
int index_of(Handle handle) {
  int* entry = static_cast<int*>(handle);
  bool valid = entry >= devices().data() && entry < devices().data() + devices().size();
  return valid ? *entry : -1;
}

Status copy_text(char* out, unsigned bytes, const std::string& text) {
  if (!out) return Status::invalid_argument;
  if (bytes <= text.size()) return Status::insufficient_size;
  std::memcpy(out, text.c_str(), text.size() + 1);
  return Status::success;
}

std::string uuid_text(int physical) {
  device::Uuid id = device::uuid_of_physical(physical);
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    char hex[4];
    std::snprintf(hex, sizeof hex, "%02x", id.bytes[i]);
    text += hex;
    if (i == 3 || i == 5 || i == 7 || i == 9) text += '-';
  }
  return text;
}

std::string version_text(int major) { return std::to_string(major) + ".0"; }

// Used memory is known for this process's own devices only: other ranks' GPUs show what their context takes.
Memory memory_of(int physical) {
  size_t free_bytes = config().memory_bytes - config().context_bytes;
  size_t total_bytes = config().memory_bytes;
  for (int ordinal = 0; ordinal < device::count(); ++ordinal) {
    if (device::physical(ordinal) == physical) memory::usage(ordinal, &free_bytes, &total_bytes);
  }
  return {total_bytes, free_bytes, total_bytes - free_bytes};
}

bool is_used_here(int physical) {
  for (int ordinal = 0; ordinal < device::count(); ++ordinal) {
    if (device::physical(ordinal) == physical) return device::is_in_use(ordinal);
  }
  return false;
}

template <typename Use>
Status with_device(Handle handle, Use use) {
  int index = index_of(handle);
  if (index < 0) return Status::invalid_argument;
  use(index);
  return Status::success;
}

template <typename Matches>
Status find(Handle* handle, Matches matches) {
  auto found = std::find_if(devices().begin(), devices().end(), matches);
  if (found == devices().end()) return Status::not_found;
  *handle = &*found;
  return Status::success;
}

// This process, on its own devices; others' are not seen.
template <typename Entry>
Status list_processes(Handle handle, unsigned* count, Entry* processes) {
  int physical = index_of(handle);
  if (physical < 0 || !count) return Status::invalid_argument;
  unsigned room = *count;
  *count = is_used_here(physical) ? 1 : 0;
  if (*count == 0) return Status::success;
  if (room == 0 || !processes) return Status::insufficient_size;
  processes[0] = {};
  processes[0].pid = static_cast<unsigned>(getpid());
  processes[0].used_bytes = memory_of(physical).used;
  return Status::success;
}

}  // namespace

extern "C" {

Status nvmlInit_v2() { return Status::success; }
Status nvmlInit() { return Status::success; }
Status nvmlInitWithFlags(unsigned) { return Status::success; }
Status nvmlShutdown() { return Status::success; }

const char* nvmlErrorString(Status status) {
  switch (status) {
    case Status::success:
      return "Success";
    case Status::invalid_argument:
      return "Invalid Argument";
    case Status::not_supported:
      return "Not Supported";
    case Status::not_found:
      return "Not Found";
    case Status::insufficient_size:
      return "Insufficient Size";
  }
  return "Unknown Error";
}

Status nvmlSystemGetDriverVersion(char* text, unsigned bytes) {
  constexpr int first_driver_of_cuda_13 = 580;
  return copy_text(text, bytes, version_text(first_driver_of_cuda_13));
}

Status nvmlSystemGetNVMLVersion(char* text, unsigned bytes) {
  return copy_text(text, bytes, version_text(PHANTORA_CUDA));
}

Status nvmlSystemGetCudaDriverVersion_v2(int* version) {
  *version = PHANTORA_CUDA * 1000;
  return Status::success;
}
Status nvmlSystemGetCudaDriverVersion(int* version) { return nvmlSystemGetCudaDriverVersion_v2(version); }

Status nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(devices().size());
  return Status::success;
}
Status nvmlDeviceGetCount(unsigned* count) { return nvmlDeviceGetCount_v2(count); }

Status nvmlDeviceGetHandleByIndex_v2(unsigned index, Handle* handle) {
  if (!handle || index >= devices().size()) return Status::invalid_argument;
  *handle = &devices()[index];
  return Status::success;
}
Status nvmlDeviceGetHandleByIndex(unsigned index, Handle* handle) {
  return nvmlDeviceGetHandleByIndex_v2(index, handle);
}

Status nvmlDeviceGetHandleByUUID(const char* uuid, Handle* handle) {
  return find(handle, [uuid](int physical) { return uuid_text(physical) == uuid; });
}

// Callers write the domain with four digits or with eight.
Status nvmlDeviceGetHandleByPciBusId_v2(const char* id, Handle* handle) {
  return find(handle, [id = std::string(id)](int physical) {
    std::string own = device::pci_bus_id_of_physical(physical);
    return id.size() >= own.size() && strcasecmp(id.c_str() + id.size() - own.size(), own.c_str()) == 0;
  });
}
Status nvmlDeviceGetHandleByPciBusId(const char* id, Handle* handle) {
  return nvmlDeviceGetHandleByPciBusId_v2(id, handle);
}

Status nvmlDeviceGetIndex(Handle handle, unsigned* index) {
  return with_device(handle, [&](int physical) { *index = static_cast<unsigned>(physical); });
}
Status nvmlDeviceGetMinorNumber(Handle handle, unsigned* number) { return nvmlDeviceGetIndex(handle, number); }

Status nvmlDeviceGetName(Handle handle, char* text, unsigned bytes) {
  return index_of(handle) < 0 ? Status::invalid_argument : copy_text(text, bytes, config().device_name);
}

Status nvmlDeviceGetUUID(Handle handle, char* text, unsigned bytes) {
  int physical = index_of(handle);
  return physical < 0 ? Status::invalid_argument : copy_text(text, bytes, uuid_text(physical));
}

Status nvmlDeviceGetPciInfo_v3(Handle handle, PciInfo* info) {
  return with_device(handle, [&](int physical) {
    *info = {};
    info->bus = static_cast<unsigned>(device::pci_bus_of_physical(physical));
    std::string id = device::pci_bus_id_of_physical(physical);
    std::snprintf(info->legacy_bus_id, sizeof info->legacy_bus_id, "%s", id.c_str());
    std::snprintf(info->bus_id, sizeof info->bus_id, "0000%s", id.c_str());
  });
}

Status nvmlDeviceGetMemoryInfo(Handle handle, Memory* memory) {
  return with_device(handle, [&](int physical) { *memory = memory_of(physical); });
}

Status nvmlDeviceGetMemoryInfo_v2(Handle handle, MemoryV2* memory) {
  return with_device(handle, [&](int physical) {
    Memory figures = memory_of(physical);
    *memory = {memory->version, figures.total, 0, figures.free, figures.used};
  });
}

Status nvmlDeviceGetComputeRunningProcesses(Handle handle, unsigned* count, Process* processes) {
  return list_processes(handle, count, processes);
}
Status nvmlDeviceGetComputeRunningProcesses_v3(Handle handle, unsigned* count, ProcessV3* processes) {
  return list_processes(handle, count, processes);
}

Status nvmlDeviceGetCudaComputeCapability(Handle handle, int* major, int* minor) {
  return with_device(handle, [&](int) {
    *major = config().cc_major;
    *minor = config().cc_minor;
  });
}

Status nvmlDeviceGetMaxClockInfo(Handle handle, int clock, unsigned* mhz) {
  constexpr int memory_clock = 2;
  if (index_of(handle) < 0) return Status::invalid_argument;
  if (clock == memory_clock) return Status::not_supported;
  *mhz = static_cast<unsigned>(config().clock_khz / 1000);
  return Status::success;
}
Status nvmlDeviceGetClockInfo(Handle handle, int clock, unsigned* mhz) {
  return nvmlDeviceGetMaxClockInfo(handle, clock, mhz);
}

Status nvmlDeviceGetNvLinkState(Handle handle, unsigned link, unsigned* active) {
  if (index_of(handle) < 0 || link >= static_cast<unsigned>(config().nvlink_count)) return Status::invalid_argument;
  *active = 1;
  return Status::success;
}

// The far ends of the links are switches.
Status nvmlDeviceGetNvLinkRemoteDeviceType(Handle handle, unsigned link, unsigned* type) {
  constexpr unsigned nvswitch = 2;
  if (index_of(handle) < 0 || link >= static_cast<unsigned>(config().nvlink_count)) return Status::invalid_argument;
  *type = nvswitch;
  return Status::success;
}

// No GPU here takes part in a fabric of several nodes; GPUs before compute capability 9 don't know the question.
Status nvmlDeviceGetGpuFabricInfoV(Handle handle, unsigned* info) {
  constexpr size_t version_bytes = sizeof *info;
  constexpr unsigned size_mask = 0xffffff;  // a version holds the size of its structure
  if (index_of(handle) < 0 || !info) return Status::invalid_argument;
  if (config().cc_major < 9) return Status::not_supported;
  size_t bytes = *info & size_mask;
  if (bytes < version_bytes) return Status::invalid_argument;
  std::memset(info + 1, 0, bytes - version_bytes);  // state 0: not supported
  return Status::success;
}

Status nvmlDeviceGetP2PStatus(Handle one, Handle other, int, int* status) {
  if (index_of(one) < 0 || index_of(other) < 0) return Status::invalid_argument;
  *status = 0;
  return Status::success;
}

Status nvmlDeviceGetTopologyCommonAncestor(Handle one, Handle other, unsigned* level) {
  constexpr unsigned same_board = 0, same_node = 40;
  if (index_of(one) < 0 || index_of(other) < 0) return Status::invalid_argument;
  *level = one == other ? same_board : same_node;
  return Status::success;
}

Status nvmlDeviceIsMigDeviceHandle(Handle handle, unsigned* is_mig) {
  return with_device(handle, [&](int) { *is_mig = 0; });
}

}  // extern "C"

}  // namespace phantora::nvml
