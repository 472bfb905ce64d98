// What a profiler is told by CUPTI's activity API; prints the work of the device, a line each: kind start end.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "check.h"
#include "cuda.h"
#include "cupti/types.h"
#include "phantora/capi.h"
#include "phantora/kernels.h"

namespace kernels = phantora::kernels;
using namespace phantora::cupti;

extern "C" {
Result cuptiActivityRegisterCallbacks(RequestBuffer, CompleteBuffer);
Result cuptiActivityEnable(Kind);
Result cuptiActivityDisable(Kind);
Result cuptiActivityFlushAll(uint32_t);
Result cuptiActivityGetNextRecord(uint8_t*, size_t, uint8_t**);
Result cuptiActivityPushExternalCorrelationId(int, uint64_t);
Result cuptiActivityPopExternalCorrelationId(int, uint64_t*);
int cudaMemsetAsync(void*, int, size_t, cudaStream_t);
int __cudaLaunchKernel(kernels::Kernel*, dim3, dim3, void**, size_t, cudaStream_t);
}

namespace {

constexpr int custom_kind = 3;
constexpr uint64_t launched_in = 77, copied_in = 78;
constexpr size_t buffer_bytes = 512;  // for a few records, so that there are several

kernels::Kernel* kernel = nullptr;
std::map<uint32_t, uint64_t> external;
std::map<uint32_t, uint32_t> function;
size_t buffers = 0;

void request(uint8_t** buffer, size_t* bytes, size_t* most_records) {
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, buffer_bytes));
  *bytes = buffer_bytes;
  *most_records = 0;
}

template <typename Record>
void print(const char* what, const Record& record) {
  auto since_start = [](uint64_t ns) { return static_cast<long long>(ns) - phantora_epoch_ns(); };
  std::printf("%s %lld %lld %s %u\n", what, since_start(record.start), since_start(record.end),
              std::to_string(external[record.correlation]).c_str(), function[record.correlation]);
}

void look_at(const uint8_t* record) {
  switch (*reinterpret_cast<const Kind*>(record)) {
    case Kind::external_correlation: {
      auto& item = *reinterpret_cast<const ExternalRecord*>(record);
      CHECK_EQUAL(item.external_kind, custom_kind);
      external[item.correlation] = item.external;
      break;
    }
    case Kind::runtime: {
      auto& item = *reinterpret_cast<const ApiRecord*>(record);
      CHECK(item.start <= item.end);
      function[item.correlation] = item.function;
      break;
    }
    case Kind::concurrent_kernel: {
      auto& item = *reinterpret_cast<const KernelRecord*>(record);
      CHECK_EQUAL(std::string(item.name) == "axpy", true);
      CHECK(item.grid[0] == 8 && item.grid[1] == 2 && item.block[0] == 256);
      CHECK_EQUAL(item.registers, 40);
      CHECK(item.static_shared_bytes == 512 && item.dynamic_shared_bytes == 128);
      print("kernel", item);
      break;
    }
    case Kind::memcpy: {
      auto& item = *reinterpret_cast<const MemcpyRecord*>(record);
      CHECK(item.copy == CopyKind::to_device);
      CHECK(item.source == MemoryKind::pageable && item.destination == MemoryKind::device);
      CHECK_EQUAL(item.bytes, 64u);
      print("memcpy", item);
      break;
    }
    case Kind::memset: {
      auto& item = *reinterpret_cast<const MemsetRecord*>(record);
      CHECK_EQUAL(item.bytes, 4096u);
      print("memset", item);
      break;
    }
    default:
      CHECK(false);
  }
}

void complete(void*, uint32_t, uint8_t* buffer, size_t bytes, size_t valid_bytes) {
  CHECK_EQUAL(bytes, buffer_bytes);
  ++buffers;
  uint8_t* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid_bytes, &record) == Result::success) look_at(record);
  std::free(buffer);
}

void launch() { CHECK_EQUAL(__cudaLaunchKernel(kernel, {8, 2, 1}, {256, 1, 1}, nullptr, 128, nullptr), cudaSuccess); }

}  // namespace

int main() {
  kernel = kernels::make("axpy", {.registers = 40, .shared_bytes = 512});
  void* memory = nullptr;
  char host[64] = {};
  CHECK_EQUAL(cudaMalloc(&memory, 4096), cudaSuccess);
  launch();  // nobody listens

  const Kind kinds[] = {Kind::memcpy, Kind::memset, Kind::concurrent_kernel, Kind::runtime, Kind::external_correlation};
  CHECK(cuptiActivityRegisterCallbacks(&request, &complete) == Result::success);
  for (Kind kind : kinds) CHECK(cuptiActivityEnable(kind) == Result::success);
  uint64_t last = 0;
  CHECK(cuptiActivityPushExternalCorrelationId(custom_kind, launched_in) == Result::success);
  launch();
  CHECK_EQUAL(cudaMemsetAsync(memory, 1, 4096, nullptr), cudaSuccess);
  CHECK(cuptiActivityPushExternalCorrelationId(custom_kind, copied_in) == Result::success);
  CHECK_EQUAL(cudaMemcpyAsync(memory, host, sizeof host, cudaMemcpyHostToDevice, nullptr), cudaSuccess);
  CHECK(cuptiActivityPopExternalCorrelationId(custom_kind, &last) == Result::success);
  CHECK_EQUAL(last, copied_in);
  CHECK(cuptiActivityPopExternalCorrelationId(custom_kind, nullptr) == Result::success);
  CHECK(cuptiActivityPopExternalCorrelationId(custom_kind, nullptr) == Result::queue_empty);
  CHECK_EQUAL(cudaDeviceSynchronize(), cudaSuccess);
  for (Kind kind : kinds) CHECK(cuptiActivityDisable(kind) == Result::success);
  launch();
  CHECK(cuptiActivityFlushAll(1) == Result::success);
  CHECK(buffers > 1);
  CHECK(cuptiActivityFlushAll(1) == Result::success);
  return checks_failed();
}
