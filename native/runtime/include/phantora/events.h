// CUDA events: a handle that names its latest recording.
#pragma once
#include <cstdint>
#include <optional>

#include "phantora/export.h"
#include "phantora/recorder.h"

namespace phantora {
namespace events PHANTORA_EXPORT {

using Handle = void*;  // cudaEvent_t, CUevent

struct Info {
  RecordingId recording = 0;  // 0: never recorded, which counts as complete
  bool timing = true;
  int device = 0;
};

Handle create(int device, bool timing);
bool destroy(Handle handle);  // false if there is no such event
std::optional<Info> find(Handle handle);

// Records on a stream (as streams::enter() gave it); the previous recording is forgotten. False: no such event.
bool record(Handle handle, StreamId stream);

// Later work on the stream starts after the event's latest recording.
void wait(StreamId stream, RecordingId recording);

// cudaEventSynchronize: in the simulation, and for values.
void synchronize(RecordingId recording);

// cudaEventQuery.
bool is_complete(RecordingId recording);

}  // namespace events PHANTORA_EXPORT
}  // namespace phantora
