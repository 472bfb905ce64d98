// Conversion of sorted row indices to row offsets: computed for real, since it is small and decides what is read next.
#include <cstdint>

#include "cusparse/handle.h"

using phantora::cusparse::Handle;
using phantora::cusparse::Status;
namespace values = phantora::values;

namespace {

// offsets[r] = base + how many indices lie below row r. Rows outside the matrix are left out.
void count_rows(const int* rows, int64_t count, int64_t height, int base, int* offsets) {
  for (int64_t r = 0; r <= height; ++r) offsets[r] = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t row = rows[i] - base;
    if (row >= 0 && row < height) ++offsets[row + 1];
  }
  offsets[0] = base;
  for (int64_t r = 0; r < height; ++r) offsets[r + 1] += offsets[r];
}

}  // namespace

extern "C" Status cusparseXcoo2csr(Handle* handle, const int* rows, int count, int height, int* offsets, int base) {
  if (handle == nullptr) return Status::not_initialized;
  if (count < 0 || height < 0 || offsets == nullptr) return Status::invalid_value;
  phantora::Launch launch;
  launch.kernel = "cusparseXcoo2csr";
  const phantora::StreamId stream = phantora::shim::launch_on(handle->stream, "cusparseXcoo2csr", launch);
  values::submit(stream, [=] {
    const size_t bytes = (size_t(height) + 1) * sizeof(int);
    if (values::state(rows, size_t(count) * sizeof(int)) != values::State::known)
      return values::mark_unknown(offsets, bytes);
    count_rows(rows, count, height, base, offsets);
    values::mark_known(offsets, bytes);
  });
  return Status::success;
}
