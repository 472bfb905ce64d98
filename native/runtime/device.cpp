#include "phantora/device.h"

#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>
#include <system_error>
#include <vector>

#include "phantora/config.h"
#include "phantora/memory_pool.h"
#include "phantora/recorder.h"
#include "phantora/values.h"

namespace phantora::device {

namespace {

thread_local int current_device = 0;

std::atomic<uint64_t> devices_in_use{0};  // a bit each

// Eight GPUs of a server lie on buses of their own.
constexpr int first_pci_bus = 0x1b;
constexpr int pci_bus_step = 0x10;

int to_int(uint64_t bytes) { return static_cast<int>(bytes); }

bool at_least(int major, int minor) {
  return config().cc_major > major || (config().cc_major == major && config().cc_minor >= minor);
}

// Resident threads and blocks of an SM, by compute capability (CUDA programming guide, "Technical Specifications").
int threads_per_sm() {
  if (config().cc_major == 8 && config().cc_minor >= 6) return 1536;
  if (config().cc_major == 12) return 1536;
  return config().cc_major == 7 && config().cc_minor == 5 ? 1024 : 2048;
}

int blocks_per_sm() {
  if (config().cc_major == 8 && config().cc_minor == 6) return 16;
  if (config().cc_major == 8 && config().cc_minor == 9) return 24;
  if (config().cc_major == 12) return 24;
  return config().cc_major == 7 && config().cc_minor == 5 ? 16 : 32;
}

// By the numbers of cudaDeviceAttr. Limits that are the same on all GPUs since compute capability 7.0 are constants.
std::map<int, int> make_attributes() {
  const Config& gpu = config();
  std::map<int, int> table = {
      {1, 1024},  // threads of a block
      {2, 1024},
      {3, 1024},
      {4, 64},  // block dimensions
      {5, 2147483647},
      {6, 65535},
      {7, 65535},        // grid dimensions
      {8, 48 << 10},     // shared memory of a block without opting in
      {9, 64 << 10},     // constant memory
      {10, 32},          // warp size
      {11, 2147483647},  // pitch
      {12, 65536},       // registers of a block
      {13, gpu.clock_khz},
      {14, 512},  // texture alignment
      {15, 1},    // copies overlap with kernels
      {16, gpu.sm_count},
      {17, 0},              // kernel time limit
      {18, 0},              // integrated
      {19, 1},              // host memory can be mapped
      {20, 0},              // compute mode: default
      {30, 512},            // surface alignment
      {31, 1},              // concurrent kernels
      {32, 1},              // ECC
      {33, first_pci_bus},  // of physical device 0; callers ask pci_bus()
      {34, 0},
      {35, 0},
      {36, to_int(gpu.hbm_bytes_per_s / 2 / (5120 / 8) / 1000)},  // memory clock for the bus width below
      {37, 5120},
      {38, to_int(gpu.l2_bytes)},
      {39, threads_per_sm()},
      {40, 3},   // copy engines
      {41, 1},   // unified addressing
      {50, 0},   // PCI domain
      {51, 32},  // texture pitch alignment
      {75, gpu.cc_major},
      {76, gpu.cc_minor},
      {78, 1},  // stream priorities
      {79, 1},
      {80, 1},  // L1 caches globals and locals
      {81, to_int(gpu.shared_per_sm)},
      {82, 65536},  // registers of an SM
      {83, 1},      // managed memory
      {84, 0},
      {85, 0},
      {86, 0},  // native atomics over the host link
      {87, 2},  // single to double precision
      {88, 0},  // pageable memory access
      {89, 1},  // concurrent managed access
      {90, 1},  // compute preemption
      {91, 1},  // registered memory at the same address
      {92, 0},  // stream memory operations: not emulated
      {93, 0},
      {94, 0},
      {95, 1},  // cooperative launch
      {97, to_int(gpu.shared_per_block_optin)},
      {98, 0},
      {99, 1},  // host registration
      {100, 0},
      {101, 0},
      {102, 1},  // virtual memory management
      {103, 1},  // … shared by file descriptors
      {104, 0},
      {105, 0},
      {106, blocks_per_sm()},
      {107, 0},
      {108, to_int(gpu.l2_bytes / 2)},
      {109, 128 << 20},
      {110, 1},        // GPUDirect RDMA with VMM
      {111, 1 << 10},  // shared memory that the system keeps of a block
      {112, 0},
      {113, 1},
      {114, 0},
      {115, 1},  // memory pools
      {116, 1},  // GPUDirect RDMA
      {117, 0},
      {118, 100},             // its writes are ordered for the owner
      {119, 0},               // pool handles for other processes
      {120, at_least(9, 0)},  // clusters
      {121, 0},
      {122, 0},  // 64-bit stream memory operations
      {123, 0},
      {124, 0},                       // DMA-BUF
      {125, 0},                       // events across processes
      {126, at_least(9, 0) ? 4 : 1},  // memory synchronisation domains
      {127, 0},
      {128, 0},  // memory shared by fabric handles: needs NVIDIA's IMEX service, which few run
      {129, 0},  // unified function pointers
      {130, 0},
      {131, -1},
      {132, gpu.multicast && at_least(9, 0)},
      {133, 0},
      {134, -1},
      {135, 0},
      {136, 0},
      {137, 0},
      {138, 0},
      {139, 0x10de},  // PCI device and vendor: NVIDIA
      {140, 0x10de},
      {141, 0},
      {142, 0},
      {143, 0},
      {144, 0},
      {145, 0},
      {147, 0},
  };
  // Textures and surfaces: not emulated, but their limits are asked for.
  constexpr int texture_limits[][2] = {
      {21, 131072}, {22, 131072},    {23, 65536},  {24, 16384}, {25, 16384},   {26, 16384}, {27, 32768}, {28, 32768},
      {29, 2048},   {42, 32768},     {43, 2048},   {45, 32768}, {46, 32768},   {47, 8192},  {48, 8192},  {49, 32768},
      {52, 32768},  {53, 32768},     {54, 2046},   {55, 32768}, {56, 131072},  {57, 65536}, {58, 16384}, {59, 16384},
      {60, 16384},  {61, 32768},     {62, 2048},   {63, 32768}, {64, 32768},   {65, 2048},  {66, 32768}, {67, 32768},
      {68, 2046},   {69, 268435456}, {70, 131072}, {71, 65000}, {72, 2097120}, {73, 32768}, {74, 32768}, {77, 32768},
  };
  for (const auto& [number, value] : texture_limits) table[number] = value;
  return table;
}

// CUDA_VISIBLE_DEVICES: ordinals, up to the first that is none. Unset: all.
int parse_visible(const std::string& item) {
  int number = -1;
  auto [end, error] = std::from_chars(item.data(), item.data() + item.size(), number);
  bool is_number = error == std::errc() && end == item.data() + item.size();
  return is_number && number >= 0 && number < config().device_count ? number : -1;
}

std::vector<int> read_visible_devices() {
  std::vector<int> visible;
  const char* text = std::getenv("CUDA_VISIBLE_DEVICES");
  if (!text) {
    for (int i = 0; i < config().device_count; ++i) visible.push_back(i);
    return visible;
  }
  std::stringstream items(text);
  for (std::string item; std::getline(items, item, ',');) {
    int physical = parse_visible(item);
    if (physical < 0) break;
    visible.push_back(physical);
  }
  return visible;
}

const std::vector<int>& visible_devices() {
  static const auto* visible = new std::vector<int>(read_visible_devices());  // never destroyed: used by exit handlers
  return *visible;
}

}  // namespace

int count() { return static_cast<int>(visible_devices().size()); }

int physical_count() { return config().device_count; }

int physical(int device) { return visible_devices()[device]; }

int current() { return current_device; }

bool set_current(int device) {
  if (device < 0 || device >= count()) return false;
  current_device = device;
  note_use(device);
  return true;
}

bool is_in_use(int device) { return devices_in_use >> device & 1; }

void note_use(int device) { devices_in_use |= uint64_t{1} << device; }

std::optional<int> attribute(int number) {
  static const auto* table = new std::map<int, int>(make_attributes());  // never destroyed: used by exit handlers
  auto found = table->find(number);
  return found == table->end() ? std::nullopt : std::optional(found->second);
}

// Different for each GPU of the cluster, and the same in every process that sees it.
Uuid uuid_of_physical(int physical) {
  Uuid id{};
  std::memcpy(id.bytes, "phantora", 8);
  int32_t place[2] = {config().node, physical};
  std::memcpy(id.bytes + 8, place, sizeof place);
  return id;
}

int pci_bus_of_physical(int physical) { return first_pci_bus + pci_bus_step * physical; }

std::string pci_bus_id_of_physical(int physical) {
  char text[32];
  std::snprintf(text, sizeof text, "0000:%02X:00.0", pci_bus_of_physical(physical));
  return text;
}

void synchronize(int device) {
  recorder::sync_device(physical(device));
  values::drain_all();
  MemoryPool::note_synchronization();
}

}  // namespace phantora::device
