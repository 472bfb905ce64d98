// Modules: kernels, what is known of them, variables, launches and their errors. argv[1] is an image of modules.ptx,
// PTX or cubin. All but the last check hold on a real GPU, too.
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "check.h"
#include "phantora/blocks.h"
#include "phantora/counters.h"
#include "phantora/kernels.h"
#include "phantora/values.h"

using CUmodule = void*;
using CUfunction = void*;
using CUdeviceptr = uint64_t;

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
};

struct Attribute {
  int id;
  char padding[4];
  union {
    unsigned cluster[3];
    char room[64];
  };
};

struct LaunchConfig {
  unsigned grid[3], block[3], shared_bytes;
  void* stream;
  const Attribute* attributes;
  unsigned attribute_count;
};

extern "C" {
int cuInit(unsigned);
int cuModuleLoadData(CUmodule*, const void*);
int cuModuleUnload(CUmodule);
int cuModuleGetFunction(CUfunction*, CUmodule, const char*);
int cuModuleGetFunctionCount(unsigned*, CUmodule);
int cuModuleGetGlobal_v2(CUdeviceptr*, size_t*, CUmodule, const char*);
int cuFuncGetAttribute(int*, int, CUfunction);
int cuFuncSetAttribute(CUfunction, int, int);
int cuFuncGetParamInfo(CUfunction, size_t, size_t*, size_t*);
int cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                   void**);
int cuLaunchKernelEx(const LaunchConfig*, CUfunction, void**, void**);
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int*, CUfunction, int, size_t);
int cudaMalloc(void**, size_t);
void** __cudaRegisterFatBinary(void*);
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, void*, void*, void*, void*, int*);
int cudaLaunchKernel(const void*, Dim3, Dim3, void**, size_t, void*);
int cudaMemcpy(void*, const void*, size_t, int);
int cudaFree(void*);
}

namespace {

constexpr int invalid_value = 1, not_found = 500, out_of_resources = 701, invalid_cluster_size = 912;
constexpr int max_threads = 0, shared_bytes = 1, registers = 4, max_dynamic_shared_bytes = 8;
constexpr int host_to_device = 1, device_to_host = 2;

CUmodule load(const std::string& image) {
  CUmodule module = nullptr;
  CHECK_EQUAL(cuModuleLoadData(&module, image.c_str()), 0);
  return module;
}

CUfunction function_of(CUmodule module, const char* name) {
  CUfunction function = nullptr;
  CHECK_EQUAL(cuModuleGetFunction(&function, module, name), 0);
  return function;
}

int attribute(CUfunction function, int which) {
  int value = -1;
  CHECK_EQUAL(cuFuncGetAttribute(&value, which, function), 0);
  return value;
}

void check_contents(CUmodule module) {
  CUfunction none = nullptr;
  unsigned count = 0;
  CHECK_EQUAL(cuModuleGetFunction(&none, module, "absent"), not_found);
  CHECK_EQUAL(cuModuleGetFunctionCount(&count, module), 0);
  CHECK_EQUAL(count, 2u);
}

void check_parameters(CUfunction fill, CUfunction through_struct) {
  size_t offset = 0, bytes = 0;
  CHECK_EQUAL(cuFuncGetParamInfo(fill, 2, &offset, &bytes), 0);
  CHECK_EQUAL(offset, 12u);
  CHECK_EQUAL(bytes, 4u);
  CHECK_EQUAL(cuFuncGetParamInfo(fill, 3, &offset, &bytes), invalid_value);
  CHECK_EQUAL(cuFuncGetParamInfo(through_struct, 0, &offset, &bytes), 0);
  CHECK_EQUAL(bytes, 24u);
}

// What only compiled code says.
void check_compiled(CUmodule module, CUfunction fill) {
  CHECK_EQUAL(attribute(fill, max_threads), 128);
  CHECK_EQUAL(attribute(fill, shared_bytes), 512);
  CHECK(attribute(fill, registers) > 0 && attribute(fill, registers) < 32);
  int blocks = 0;
  CHECK_EQUAL(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, fill, 128, 0), 0);
  CHECK_EQUAL(blocks, 16);
  CHECK_EQUAL(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, fill, 128, 100000), 0);
  CHECK_EQUAL(blocks, 2);
  CUdeviceptr address = 0;
  size_t bytes = 0;
  uint32_t answer = 0;
  CHECK_EQUAL(cuModuleGetGlobal_v2(&address, &bytes, module, "answer"), 0);
  CHECK_EQUAL(bytes, sizeof answer);
  CHECK_EQUAL(cudaMemcpy(&answer, reinterpret_cast<void*>(address), bytes, device_to_host), 0);
  CHECK_EQUAL(answer, 42u);
  CHECK_EQUAL(cuLaunchKernel(fill, 1, 1, 1, 256, 1, 1, 0, nullptr, nullptr, nullptr), out_of_resources);
}

void check_limits(CUfunction fill, void** arguments) {
  constexpr int limit = 100000;
  CHECK_EQUAL(cuLaunchKernel(fill, 1, 1, 1, 32, 1, 1, limit, nullptr, arguments, nullptr), invalid_value);
  CHECK_EQUAL(cuFuncSetAttribute(fill, max_dynamic_shared_bytes, limit), 0);
  CHECK_EQUAL(cuLaunchKernel(fill, 1, 1, 1, 32, 1, 1, limit, nullptr, arguments, nullptr), 0);
  CHECK_EQUAL(cuFuncSetAttribute(fill, max_dynamic_shared_bytes, 1 << 20), invalid_value);
  CHECK_EQUAL(cuLaunchKernel(fill, 0, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr), invalid_value);
}

void check_clusters(CUfunction fill, void** arguments) {
  Attribute cluster{4, {}, {{2, 1, 1}}};
  LaunchConfig config{{4, 1, 1}, {32, 1, 1}, 0, nullptr, &cluster, 1};
  CHECK_EQUAL(cuLaunchKernelEx(&config, fill, arguments, nullptr), 0);
  config.grid[0] = 3;
  CHECK_EQUAL(cuLaunchKernelEx(&config, fill, arguments, nullptr), invalid_cluster_size);
  cluster.cluster[0] = config.grid[0] = 16;
  CHECK_EQUAL(cuLaunchKernelEx(&config, fill, arguments, nullptr), invalid_cluster_size);
}

// What is written by a kernel that nothing computes is unknown afterwards: not only by its plain pointers.
void check_results(CUfunction fill, CUfunction through_struct, char* memory) {
  using phantora::values::State;
  constexpr size_t block_bytes = 1024;
  std::vector<char> known(2 * block_bytes, 7);
  auto restore = [&] { CHECK_EQUAL(cudaMemcpy(memory, known.data(), known.size(), host_to_device), 0); };
  auto state = [&](size_t block) { return phantora::values::state(memory + block * block_bytes, block_bytes); };
  phantora::blocks::note(memory, block_bytes);
  phantora::blocks::note(memory + block_bytes, block_bytes);

  restore();
  uint32_t count = 32;
  float value = 1;
  void* to = memory + block_bytes;
  void* each[] = {&to, &count, &value};
  CHECK_EQUAL(cuLaunchKernel(fill, 1, 1, 1, 32, 1, 1, 0, nullptr, each, nullptr), 0);
  CHECK(state(0) == State::known);
  CHECK(state(1) == State::unknown);

  restore();
  struct {
    uint64_t before = 3;
    void* to;
    uint64_t after = 0;
  } passed{.to = memory};
  size_t bytes = sizeof passed;
  void* buffer[] = {reinterpret_cast<void*>(1), &passed, reinterpret_cast<void*>(2), &bytes, nullptr};
  CHECK_EQUAL(cuLaunchKernel(through_struct, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, buffer), 0);
  CHECK(state(0) == State::unknown);
  CHECK(state(1) == State::known);

  restore();
  CHECK(!phantora::kernels::describe(fill, "argument\tonly\t1\t1\t"));
  CHECK(phantora::kernels::describe(fill,
                                    "argument\tto\t1\t0\tfloat32\nargument\tcount\t0\t0\t\nargument\tvalue\t0\t0\t"));
  CHECK_EQUAL(cuLaunchKernel(fill, 1, 1, 1, 32, 1, 1, 0, nullptr, each, nullptr), 0);
  CHECK(state(1) == State::known);
}

// The same for a kernel that a program's own code registers, as nvcc has it do.
void check_registered(const std::string& fat_binary, char* memory) {
  struct {
    uint32_t magic = 0x466243b1, version = 1;
    const void* binary;
    const void* file = nullptr;
  } wrapper{.binary = fat_binary.data()};
  static const char stub = 0;
  char name[] = "fill";
  void** handle = __cudaRegisterFatBinary(&wrapper);
  __cudaRegisterFunction(handle, &stub, name, name, -1, nullptr, nullptr, nullptr, nullptr, nullptr);
  std::vector<char> known(64, 7);
  CHECK_EQUAL(cudaMemcpy(memory, known.data(), known.size(), host_to_device), 0);
  uint32_t count = 32;
  float value = 1;
  void* each[] = {&memory, &count, &value};
  CHECK_EQUAL(cudaLaunchKernel(&stub, {}, {32, 1, 1}, each, 0, nullptr), 0);
  CHECK(phantora::values::state(memory, known.size()) == phantora::values::State::unknown);
}

}  // namespace

int main(int, char** argv) {
  std::ifstream file(argv[1], std::ios::binary);
  std::string image{std::istreambuf_iterator<char>(file), {}};
  bool is_compiled = !image.starts_with(".version");
  CHECK_EQUAL(cuInit(0), 0);
  void* memory = nullptr;
  CHECK_EQUAL(cudaMalloc(&memory, 1 << 21), 0);
  CUmodule module = load(image);
  CUfunction fill = function_of(module, "fill"), through_struct = function_of(module, "through_struct");
  uint32_t count = 32;
  float value = 1;
  void* arguments[] = {&memory, &count, &value};
  check_contents(module);
  check_parameters(fill, through_struct);
  if (is_compiled) check_compiled(module, fill);
  check_limits(fill, arguments);
  check_clusters(fill, arguments);
  check_results(fill, through_struct, static_cast<char*>(memory));
  if (image.starts_with("\x50\xed\x55\xba")) check_registered(image, static_cast<char*>(memory));
  CHECK_EQUAL(cuModuleUnload(module), 0);
  CHECK_EQUAL(cudaFree(memory), 0);
  return checks_failed();
}
