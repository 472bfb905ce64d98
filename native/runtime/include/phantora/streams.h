// Streams: handles, and the implicit order between the legacy default stream and blocking streams.
#pragma once
#include <cstdint>
#include <optional>

#include "phantora/export.h"
#include "phantora/recorder.h"

namespace phantora {
namespace streams PHANTORA_EXPORT {

using Handle = void*;  // cudaStream_t, CUstream; null is the legacy default stream of the current device

inline Handle legacy() { return reinterpret_cast<Handle>(1); }      // cudaStreamLegacy
inline Handle per_thread() { return reinterpret_cast<Handle>(2); }  // cudaStreamPerThread

struct Info {
  StreamId id = 0;
  int device = 0;
  int priority = 0;
  bool non_blocking = false;
};

Handle create(int device, bool non_blocking, int priority);
bool destroy(Handle handle);  // false if there is no such stream

// The stream behind a handle; nothing if there is none.
std::optional<Info> find(Handle handle);

int device_of(StreamId stream);  // of a stream that there is or was

// Like find(), for issuing work: first orders the stream behind the legacy default stream, or that one behind the
// blocking streams, as CUDA does. Every launch, copy, collective and event record goes through here.
std::optional<StreamId> enter(Handle handle);

// enter() for callers that have no error to return: an unknown handle ends the process with a message.
StreamId enter_or_fail(Handle handle, const char* function);

// cudaStreamSynchronize: in the simulation, and for values.
void synchronize(StreamId stream);

// cudaStreamQuery.
bool is_idle(StreamId stream);

// Makes `stream` wait for all that `before` has been given so far, in the simulation and for values.
void order(StreamId before, StreamId stream);

}  // namespace streams PHANTORA_EXPORT
}  // namespace phantora
