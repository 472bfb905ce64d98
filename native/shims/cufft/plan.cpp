// FFT plans (cufftXt*, which is what PyTorch calls): one launch an execution.
#include <cstdint>
#include <map>
#include <mutex>

#include "data_type.h"
#include "library_launch.h"

using phantora::Launch;
using phantora::shim::bytes_of;
using phantora::shim::DataType;

namespace {

enum class Result : int { success = 0, invalid_plan = 1, invalid_value = 4 };

struct Plan {
  void* stream = nullptr;
  void* work_area = nullptr;
  bool auto_allocation = true;
  size_t work_bytes = 0;
  size_t output_bytes = 0;
};

// cufftHandle is an int.
std::mutex mutex;
std::map<int, Plan> plans;
int next_handle = 1;

template <typename Change>
Result change(int handle, Change apply) {
  std::lock_guard lock(mutex);
  const auto found = plans.find(handle);
  if (found == plans.end()) return Result::invalid_plan;
  apply(found->second);
  return Result::success;
}

bool is_complex(DataType type) { return type == DataType::c16f || type == DataType::c32f || type == DataType::c64f; }

// Elements from the first to one past the last of `batch` transforms, by cuFFT's advanced data layout.
int64_t extent(int rank, const long long* n, const long long* embed, long long stride, long long distance,
               long long batch, bool halved) {
  int64_t last = 0;
  int64_t step = embed ? stride : 1;
  int64_t points = 1;
  for (int i = rank - 1; i >= 0; --i) {
    const int64_t size = i == rank - 1 && halved ? n[i] / 2 + 1 : n[i];
    last += (size - 1) * step;
    step *= embed ? embed[i] : size;
    points *= size;
  }
  return last + (batch - 1) * (embed ? distance : points) + 1;
}

}  // namespace

extern "C" {

Result cufftCreate(int* handle) {
  if (handle == nullptr) return Result::invalid_value;
  std::lock_guard lock(mutex);
  plans[*handle = next_handle++] = {};
  return Result::success;
}

Result cufftDestroy(int handle) {
  std::lock_guard lock(mutex);
  return plans.erase(handle) ? Result::success : Result::invalid_plan;
}

Result cufftSetStream(int handle, void* stream) {
  return change(handle, [=](Plan& plan) { plan.stream = stream; });
}
Result cufftSetAutoAllocation(int handle, int automatic) {
  return change(handle, [=](Plan& plan) { plan.auto_allocation = automatic != 0; });
}
Result cufftSetWorkArea(int handle, void* area) {
  return change(handle, [=](Plan& plan) { plan.work_area = area; });
}

// The work area is taken to hold one copy of the data, as an out-of-place pass of the algorithm needs; NVIDIA publishes
// no sizes.
Result cufftXtMakePlanMany(int handle, int rank, long long* n, long long* in_embed, long long in_stride,
                           long long in_distance, DataType in_type, long long* out_embed, long long out_stride,
                           long long out_distance, DataType out_type, long long batch, size_t* work_bytes, DataType) {
  if (rank < 1 || rank > 3 || n == nullptr || batch < 1 || work_bytes == nullptr) return Result::invalid_value;
  const bool to_half = !is_complex(in_type), from_half = !is_complex(out_type);
  const int64_t in = extent(rank, n, in_embed, in_stride, in_distance, batch, from_half);
  const int64_t out = extent(rank, n, out_embed, out_stride, out_distance, batch, to_half);
  *work_bytes = bytes_of(in_type, in);
  return change(handle, [&](Plan& plan) {
    plan.work_bytes = *work_bytes;
    plan.output_bytes = bytes_of(out_type, out);
  });
}

Result cufftXtExec(int handle, void*, void* output, int) {
  Plan plan;
  const Result found = change(handle, [&](const Plan& stored) { plan = stored; });
  if (found != Result::success) return found;
  Launch launch;
  launch.kernel = "cufftXtExec";
  phantora::shim::launch_on(plan.stream, "cufftXtExec", launch, {{output, plan.output_bytes}});
  return Result::success;
}

}  // extern "C"
