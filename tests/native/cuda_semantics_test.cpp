// Memory, copies, launches and handles of the CUDA runtime, without a simulator.
#include <atomic>
#include <cstring>
#include <string>
#include <vector>

#include "check.h"
#include "cuda.h"
#include "phantora/capi.h"

namespace {

char kernel_stub;   // the host address that stands for a kernel
int device_symbol;  // … and for a __device__ variable

void register_module() {
  void** module = __cudaRegisterFatBinary(nullptr);
  __cudaRegisterFunction(module, &kernel_stub, nullptr, "axpy", -1, nullptr, nullptr, nullptr, nullptr, nullptr);
  __cudaRegisterVar(module, reinterpret_cast<char*>(&device_symbol), nullptr, "symbol", 0, sizeof device_symbol, 0, 0);
}

uint64_t counter(const char* name) {
  uint64_t value = 0;
  CHECK(phantora_counter(name, &value));
  return value;
}

void test_devices() {
  int count = 0, current = -1, value = 0;
  CHECK_EQUAL(cudaGetDeviceCount(&count), cudaSuccess);
  CHECK_EQUAL(count, 4);
  CHECK_EQUAL(cudaSetDevice(4), cudaErrorInvalidDevice);
  CHECK_EQUAL(cudaPeekAtLastError(), cudaErrorInvalidDevice);
  CHECK_EQUAL(cudaGetLastError(), cudaErrorInvalidDevice);
  CHECK_EQUAL(cudaGetLastError(), cudaSuccess);
  CHECK_EQUAL(cudaSetDevice(2), cudaSuccess);
  CHECK_EQUAL(cudaGetDevice(&current), cudaSuccess);
  CHECK_EQUAL(current, 2);
  CHECK_EQUAL(cudaDeviceGetAttribute(&value, 16, 0), cudaSuccess);
  CHECK_EQUAL(value, 132);
  CHECK_EQUAL(cudaDeviceGetAttribute(&value, 9999, 0), cudaErrorInvalidValue);
  CHECK_EQUAL(cudaSetDevice(0), cudaSuccess);
  cudaGetLastError();
}

size_t free_bytes() {
  size_t free = 0, total = 0;
  CHECK_EQUAL(cudaMemGetInfo(&free, &total), cudaSuccess);
  CHECK_EQUAL(total, 85'000'000'000u);
  return free;
}

void test_capacity() {
  const size_t granule = 2u << 20;
  size_t before = free_bytes();
  CHECK_EQUAL(before, 85'000'000'000u - 500'000'000u);
  void *large = nullptr, *small = nullptr, *other = nullptr, *none = &large;
  CHECK_EQUAL(cudaMalloc(&large, (8u << 20) + 1), cudaSuccess);
  CHECK_EQUAL(before - free_bytes(), 5 * granule);
  CHECK_EQUAL(cudaMalloc(&small, 1), cudaSuccess);
  CHECK_EQUAL(cudaMalloc(&other, 700), cudaSuccess);
  CHECK_EQUAL(static_cast<char*>(other) - static_cast<char*>(small), 512);
  CHECK_EQUAL(before - free_bytes(), 6 * granule);
  CHECK_EQUAL(cudaMalloc(&none, before), cudaErrorMemoryAllocation);
  CHECK(none == nullptr);
  CHECK_EQUAL(std::string(cudaGetErrorString(cudaGetLastError())) == "out of memory", true);
  CHECK_EQUAL(cudaFree(small), cudaSuccess);
  CHECK_EQUAL(cudaFree(small), cudaErrorInvalidValue);
  CHECK_EQUAL(cudaFree(other), cudaSuccess);
  CHECK_EQUAL(cudaFree(large), cudaSuccess);
  CHECK_EQUAL(cudaFree(nullptr), cudaSuccess);
  CHECK_EQUAL(free_bytes(), before);
  cudaGetLastError();
}

// Nearly all of the device, of which a page is touched: costs no host memory.
void test_untouched_memory_is_free() {
  void* most = nullptr;
  CHECK_EQUAL(cudaMalloc(&most, 80'000'000'000), cudaSuccess);
  int seven = 7, back = 0;
  char* end = static_cast<char*>(most) + 79'999'999'000;
  CHECK_EQUAL(cudaMemcpy(end, &seven, sizeof seven, cudaMemcpyHostToDevice), cudaSuccess);
  CHECK_EQUAL(cudaMemcpy(&back, end, sizeof back, cudaMemcpyDeviceToHost), cudaSuccess);
  CHECK_EQUAL(back, 7);
  CHECK_EQUAL(cudaFree(most), cudaSuccess);
}

void test_pointers() {
  void *device = nullptr, *pinned = nullptr;
  std::vector<char> plain(8192);
  cudaPointerAttributes attributes{};
  cudaSetDevice(1);
  CHECK_EQUAL(cudaMalloc(&device, 4096), cudaSuccess);
  CHECK_EQUAL(cudaMallocHost(&pinned, 4096), cudaSuccess);
  CHECK_EQUAL(cudaPointerGetAttributes(&attributes, static_cast<char*>(device) + 4095), cudaSuccess);
  CHECK_EQUAL(attributes.type, 2);
  CHECK_EQUAL(attributes.device, 1);
  CHECK_EQUAL(cudaPointerGetAttributes(&attributes, pinned), cudaSuccess);
  CHECK_EQUAL(attributes.type, 1);
  CHECK(attributes.devicePointer == pinned && attributes.hostPointer == pinned);
  CHECK_EQUAL(cudaPointerGetAttributes(&attributes, plain.data()), cudaSuccess);
  CHECK_EQUAL(attributes.type, 0);
  CHECK_EQUAL(cudaHostRegister(plain.data(), plain.size(), 0), cudaSuccess);
  CHECK_EQUAL(cudaHostRegister(plain.data() + 16, 16, 0), 712);
  CHECK_EQUAL(cudaPointerGetAttributes(&attributes, plain.data() + 100), cudaSuccess);
  CHECK_EQUAL(attributes.type, 1);
  CHECK_EQUAL(cudaHostUnregister(plain.data()), cudaSuccess);
  CHECK_EQUAL(cudaHostUnregister(plain.data()), 713);
  CHECK_EQUAL(cudaFreeHost(pinned), cudaSuccess);
  CHECK_EQUAL(cudaFree(device), cudaSuccess);
  cudaSetDevice(0);
  cudaGetLastError();
}

void test_copies() {
  int numbers[6] = {1, 2, 3, 4, 5, 6}, back[6] = {};
  void *one = nullptr, *other = nullptr;
  cudaMalloc(&one, sizeof numbers);
  cudaMalloc(&other, sizeof numbers);
  CHECK_EQUAL(cudaMemcpy(one, numbers, sizeof numbers, cudaMemcpyHostToDevice), cudaSuccess);
  CHECK_EQUAL(cudaMemcpyAsync(other, one, sizeof numbers, cudaMemcpyDeviceToDevice, nullptr), cudaSuccess);
  CHECK_EQUAL(cudaMemcpy(back, other, sizeof back, cudaMemcpyDefault), cudaSuccess);
  CHECK(std::memcmp(back, numbers, sizeof back) == 0);
  // The second column of three rows of two.
  int column[3] = {};
  CHECK_EQUAL(cudaMemcpy2D(column, 4, static_cast<char*>(other) + 4, 8, 4, 3, cudaMemcpyDeviceToHost), cudaSuccess);
  CHECK(column[0] == 2 && column[1] == 4 && column[2] == 6);
  CHECK_EQUAL(cudaMemset(one, 0xff, 8), cudaSuccess);
  CHECK_EQUAL(cudaMemcpy(back, one, sizeof back, cudaMemcpyDeviceToHost), cudaSuccess);
  CHECK(back[0] == -1 && back[1] == -1 && back[2] == 3);
  CHECK_EQUAL(cudaMemcpy(back, numbers, sizeof back, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  CHECK_EQUAL(cudaMemcpy(one, other, 0, cudaMemcpyHostToDevice), cudaSuccess);
  CHECK_EQUAL(cudaMemset(numbers, 0, 4), cudaErrorInvalidValue);
  int nine = 9, from_symbol = 0;
  CHECK_EQUAL(cudaMemcpyToSymbol(&device_symbol, &nine, sizeof nine, 0, cudaMemcpyHostToDevice), cudaSuccess);
  CHECK_EQUAL(cudaMemcpyFromSymbol(&from_symbol, &device_symbol, 4, 0, cudaMemcpyDeviceToHost), cudaSuccess);
  CHECK_EQUAL(from_symbol, 9);
  CHECK_EQUAL(cudaMemcpyToSymbol(&nine, &nine, sizeof nine, 0, cudaMemcpyHostToDevice), 13);
  cudaFree(one);
  cudaFree(other);
  cudaGetLastError();
}

// Freed memory stays with its pool: by default until the host waits for the device, with a threshold as far as that
// goes, until it is trimmed.
void test_pool() {
  constexpr size_t mib = 1u << 20;
  size_t before = free_bytes();
  void *first = nullptr, *second = nullptr;
  auto taken = [before] { return (before - free_bytes()) / mib; };
  CHECK_EQUAL(cudaMallocAsync(&first, 4 * mib, nullptr), cudaSuccess);
  CHECK_EQUAL(cudaMallocAsync(&second, 8 * mib, nullptr), cudaSuccess);
  CHECK_EQUAL(taken(), 12u);
  CHECK_EQUAL(cudaFreeAsync(first, nullptr), cudaSuccess);
  CHECK_EQUAL(taken(), 12u);
  CHECK_EQUAL(cudaDeviceSynchronize(), cudaSuccess);
  CHECK_EQUAL(taken(), 8u);

  cudaMemPool_t pool = nullptr;
  CHECK_EQUAL(cudaDeviceGetDefaultMemPool(&pool, 0), cudaSuccess);
  auto figure = [pool](int attribute) {
    uint64_t value = 0;
    CHECK_EQUAL(cudaMemPoolGetAttribute(pool, attribute, &value), cudaSuccess);
    return value;
  };
  auto reserved = [&] { return figure(cudaMemPoolAttrReservedMemCurrent) / mib; };
  uint64_t threshold = 6 * mib, zero = 0;
  CHECK_EQUAL(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold), cudaSuccess);
  CHECK_EQUAL(cudaFreeAsync(second, nullptr), cudaSuccess);
  CHECK_EQUAL(figure(cudaMemPoolAttrUsedMemCurrent), 0u);
  CHECK_EQUAL(reserved(), 8u);
  CHECK_EQUAL(cudaStreamSynchronize(nullptr), cudaSuccess);
  CHECK_EQUAL(reserved(), 6u);
  CHECK_EQUAL(taken(), 6u);
  CHECK_EQUAL(cudaMallocAsync(&first, 4 * mib, nullptr), cudaSuccess);
  CHECK_EQUAL(taken(), 6u);
  CHECK_EQUAL(cudaMemPoolTrimTo(pool, 5 * mib), cudaSuccess);
  CHECK_EQUAL(taken(), 5u);
  CHECK_EQUAL(cudaFree(first), cudaSuccess);
  CHECK_EQUAL(reserved(), 5u);
  CHECK_EQUAL(figure(cudaMemPoolAttrReservedMemHigh) / mib, 12u);
  CHECK_EQUAL(figure(cudaMemPoolAttrUsedMemHigh) / mib, 12u);

  // A device without room takes it back from the pool.
  size_t all = (free_bytes() + 5 * mib) / (2 * mib) * (2 * mib);
  CHECK_EQUAL(cudaMallocAsync(&first, all, nullptr), cudaSuccess);
  CHECK(free_bytes() < 2 * mib);
  CHECK_EQUAL(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &zero), cudaSuccess);
  CHECK_EQUAL(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &zero), cudaSuccess);
  CHECK_EQUAL(cudaFree(first), cudaSuccess);
  CHECK_EQUAL(cudaDeviceSynchronize(), cudaSuccess);
  CHECK_EQUAL(free_bytes(), before);
}

void test_streams_and_events() {
  cudaStream_t stream = nullptr, urgent = nullptr;
  int priority = 1, capturing = -1;
  CHECK_EQUAL(cudaStreamCreate(&stream), cudaSuccess);
  CHECK_EQUAL(cudaStreamCreateWithPriority(&urgent, cudaStreamNonBlocking, -99), cudaSuccess);
  CHECK_EQUAL(cudaStreamGetPriority(urgent, &priority), cudaSuccess);
  CHECK_EQUAL(priority, -5);
  CHECK_EQUAL(cudaStreamIsCapturing(stream, &capturing), cudaSuccess);
  CHECK_EQUAL(capturing, 0);
  cudaEvent_t start = nullptr, end = nullptr, plain = nullptr;
  float elapsed = -1;
  CHECK_EQUAL(cudaEventCreate(&start), cudaSuccess);
  CHECK_EQUAL(cudaEventCreate(&end), cudaSuccess);
  CHECK_EQUAL(cudaEventCreateWithFlags(&plain, cudaEventDisableTiming), cudaSuccess);
  CHECK_EQUAL(cudaEventQuery(start), cudaSuccess);  // never recorded
  CHECK_EQUAL(cudaEventElapsedTime(&elapsed, start, end), cudaErrorInvalidResourceHandle);
  CHECK_EQUAL(cudaEventRecord(start, stream), cudaSuccess);
  phantora_sleep_ns(3'000'000);
  CHECK_EQUAL(cudaEventRecord(end, stream), cudaSuccess);
  CHECK_EQUAL(cudaEventSynchronize(end), cudaSuccess);
  CHECK_EQUAL(cudaEventElapsedTime(&elapsed, start, end), cudaSuccess);
  CHECK(elapsed >= 3.0F && elapsed < 3.1F);
  CHECK_EQUAL(cudaEventRecord(plain, stream), cudaSuccess);
  CHECK_EQUAL(cudaEventElapsedTime(&elapsed, start, plain), cudaErrorInvalidResourceHandle);
  CHECK_EQUAL(cudaStreamWaitEvent(urgent, end, 0), cudaSuccess);
  CHECK_EQUAL(cudaStreamSynchronize(urgent), cudaSuccess);
  CHECK_EQUAL(cudaStreamSynchronize(cudaStreamPerThread), cudaSuccess);
  CHECK_EQUAL(cudaEventDestroy(end), cudaSuccess);
  CHECK_EQUAL(cudaEventDestroy(end), cudaErrorInvalidResourceHandle);
  CHECK_EQUAL(cudaStreamDestroy(stream), cudaSuccess);
  CHECK_EQUAL(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
  CHECK_EQUAL(cudaEventRecord(start, stream), cudaErrorInvalidResourceHandle);
  cudaGetLastError();
}

void test_launches() {
  uint64_t launches = counter("launches"), signatures = counter("signatures");
  int64_t before = phantora_now_ns();
  for (int i = 0; i < 3; ++i) {
    CHECK_EQUAL(cudaLaunchKernel(&kernel_stub, {8, 1, 1}, {256, 1, 1}, nullptr, 0, nullptr), cudaSuccess);
  }
  CHECK_EQUAL(counter("launches") - launches, 3u);
  CHECK_EQUAL(counter("signatures") - signatures, 1u);
  CHECK_EQUAL(phantora_now_ns() - before, 3 * 4000);
  CHECK_EQUAL(cudaLaunchKernel(&kernel_stub, {8, 1, 1}, {2048, 1, 1}, nullptr, 0, nullptr),
              cudaErrorInvalidConfiguration);
  CHECK_EQUAL(cudaLaunchKernel(&launches, {1, 1, 1}, {1, 1, 1}, nullptr, 0, nullptr), cudaErrorInvalidDeviceFunction);
  cudaGetLastError();
}

std::atomic<int> host_calls{0};

void test_host_functions() {
  auto call = [](void* expected) { host_calls += host_calls == *static_cast<int*>(expected); };
  static int order[] = {0, 1, 2};
  for (int& position : order) CHECK_EQUAL(cudaLaunchHostFunc(nullptr, call, &position), cudaSuccess);
  CHECK_EQUAL(cudaStreamSynchronize(nullptr), cudaSuccess);
  CHECK_EQUAL(host_calls.load(), 3);
}

void test_driver_entry_points() {
  void* function = nullptr;
  int found = -1, device = -1;
  CHECK_EQUAL(cudaGetDriverEntryPointByVersion("cuDeviceGet", &function, 13000, 0, &found), cudaSuccess);
  CHECK_EQUAL(found, 0);
  CHECK_EQUAL(reinterpret_cast<int (*)(int*, int)>(function)(&device, 3), 0);
  CHECK_EQUAL(device, 3);
  CHECK_EQUAL(cudaGetDriverEntryPointByVersion("cuMemAlloc", &function, 13000, 0, &found), cudaSuccess);
  CUdeviceptr pointer = 0;
  CHECK_EQUAL(reinterpret_cast<int (*)(CUdeviceptr*, size_t)>(function)(&pointer, 512), 0);
  CHECK_EQUAL(cudaFree(reinterpret_cast<void*>(pointer)), cudaSuccess);
  CHECK_EQUAL(cudaGetDriverEntryPointByVersion("cuNoSuchThing", &function, 13000, 0, &found), cudaSuccess);
  CHECK_EQUAL(found, 1);
}

}  // namespace

int main() {
  register_module();
  test_devices();
  test_capacity();
  test_untouched_memory_is_free();
  test_pointers();
  test_copies();
  test_pool();
  test_streams_and_events();
  test_launches();
  test_host_functions();
  test_driver_entry_points();
  return checks_failed();
}
