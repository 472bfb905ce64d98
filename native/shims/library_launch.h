// A library call that would launch kernels: a node on its stream, and memory that it overwrites.
#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "phantora/launch.h"
#include "phantora/streams.h"
#include "phantora/values.h"

namespace phantora::shim {

// What a call writes to device memory.
struct Written {
  void* pointer = nullptr;
  size_t bytes = 0;
};

// Makes the node on `stream`. Inside an op the ATen hook looks after the outputs; a call that no op owns (an
// extension's, a native program's) leaves what it writes unknown, since nothing computes it.
inline StreamId launch_on(streams::Handle stream, const char* function, const Launch& launch,
                          std::initializer_list<Written> written = {}) {
  const StreamId id = streams::enter_or_fail(stream, function);
  phantora::launch(id, launch);
  if (current_op() != nullptr) return id;
  for (const Written& each : written) {
    if (each.pointer == nullptr || each.bytes == 0) continue;
    values::submit(id, [each] { values::mark_unknown(each.pointer, each.bytes); });
  }
  return id;
}

// As above for outputs behind an array of pointers in device memory (batched calls): followed where the array's own
// bytes are known, in stream order.
inline void overwrite_through(StreamId stream, void* const* pointers, int64_t count, size_t bytes) {
  if (current_op() != nullptr || pointers == nullptr || count <= 0) return;
  values::submit(stream, [=] {
    if (values::state(pointers, count * sizeof(void*)) != values::State::known) return;
    for (int64_t i = 0; i < count; ++i) values::mark_unknown(pointers[i], bytes);
  });
}

// A result in host memory of a computation that the emulated device only times: waits for it as the library does,
// stores benign zeros and counts the read of a value that nothing computed.
inline void give_unknown_result(StreamId stream, const char* function, void* result, size_t bytes) {
  recorder::sync_stream(stream);
  values::drain_stream(stream);
  auto* out = static_cast<unsigned char*>(result);
  for (size_t i = 0; i < bytes; ++i) out[i] = 0;
  values::count_unknown_read(function, bytes);
}

}  // namespace phantora::shim
