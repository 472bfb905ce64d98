// CUDA events: a handle that names its latest recording.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>

#include "phantora/capture.h"
#include "phantora/export.h"
#include "phantora/recorder.h"

namespace phantora {
namespace events PHANTORA_EXPORT {

using Handle = void*;  // cudaEvent_t, CUevent

struct Info {
  RecordingId recording = 0;  // 0: never recorded, which counts as complete
  bool timing = true;
  int device = 0;
  std::shared_ptr<const captures::Point> captured = nullptr;  // if the latest recording was one of a captured stream
};

Handle create(int device, bool timing);
bool destroy(Handle handle);  // false if there is no such event
std::optional<Info> find(Handle handle);

// Records on a stream (as streams::enter() gave it); the previous recording is forgotten. False: no such event. On a
// stream that is being captured it is either a point in the graph, or, `external`, a node that records it at each
// launch.
bool record(Handle handle, StreamId stream, bool external = false);

// Later work on the stream starts after the event's latest recording; `external` as above. The event must exist.
captures::Error wait(StreamId stream, int device, Handle handle, bool external = false);

// cudaEventSynchronize: in the simulation, and for values.
void synchronize(RecordingId recording);

// cudaEventQuery.
bool is_complete(RecordingId recording);

}  // namespace events PHANTORA_EXPORT
}  // namespace phantora
