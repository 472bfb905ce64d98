// Copies and sets: a node on the stream, the values, and the waiting that CUDA does.
#pragma once
#include <cstddef>

#include "phantora/export.h"
#include "phantora/streams.h"

namespace phantora {
namespace transfer PHANTORA_EXPORT {

// `height` rows of `width` bytes, `pitch` bytes apart. A plain copy is one row.
struct Rows {
  size_t width = 0;
  size_t height = 1;
  size_t dst_pitch = 0;
  size_t src_pitch = 0;
};

enum class Wait {
  as_needed,  // cudaMemcpyAsync: a copy to pageable host memory waits for its end, a large one from it too
  always,     // cudaMemcpy: every copy but one between devices does
};

void copy(StreamId stream, void* dst, const void* src, const Rows& rows, Wait wait);
inline void copy(StreamId stream, void* dst, const void* src, size_t bytes, Wait wait) {
  copy(stream, dst, src, Rows{bytes, 1, bytes, bytes}, wait);
}

// A pattern of 1, 2 or 4 bytes, `rows.dst_pitch` apart.
void set(StreamId stream, void* dst, const void* pattern, size_t pattern_bytes, const Rows& rows);

// Device memory, or host memory that the device can reach.
bool is_device(const void* pointer);

}  // namespace transfer PHANTORA_EXPORT
}  // namespace phantora
