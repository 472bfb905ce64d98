#include "phantora/activity.h"
#include "phantora/streams.h"

#include <algorithm>

#include "cudart/error.h"
#include "phantora/capture.h"
#include "phantora/device.h"
#include "phantora/events.h"
#include "phantora/host_function.h"

namespace phantora::cudart {

namespace {

constexpr int greatest_priority = -5;

// Runs `use` on what is behind the handle.
template <typename Use>
Status with_stream(Stream stream, Use use) {
  std::optional<streams::Info> info = streams::find(stream);
  if (!info) return done(Status::invalid_resource_handle);
  use(*info);
  return Status::success;
}

}  // namespace

extern "C" {

Status cudaStreamCreateWithPriority(Stream* stream, unsigned flags, int priority) {
  if (!stream || flags > stream_non_blocking) return done(Status::invalid_value);
  int allowed = std::clamp(priority, greatest_priority, 0);  // CUDA clamps as well
  *stream = streams::create(device::current(), flags == stream_non_blocking, allowed);
  return Status::success;
}

Status cudaStreamCreateWithFlags(Stream* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}

Status cudaStreamCreate(Stream* stream) { return cudaStreamCreateWithPriority(stream, 0, 0); }

Status cudaStreamDestroy(Stream stream) {
  return done(streams::destroy(stream) ? Status::success : Status::invalid_resource_handle);
}

Status cudaStreamGetPriority(Stream stream, int* priority) {
  return with_stream(stream, [&](const streams::Info& info) { *priority = info.priority; });
}

Status cudaStreamGetFlags(Stream stream, unsigned* flags) {
  return with_stream(stream, [&](const streams::Info& info) { *flags = info.non_blocking ? stream_non_blocking : 0; });
}

Status cudaStreamGetId(Stream stream, unsigned long long* id) {
  return with_stream(stream, [&](const streams::Info& info) { *id = info.id; });
}

Status cudaStreamGetDevice(Stream stream, int* device) {
  return with_stream(stream, [&](const streams::Info& info) { *device = info.device; });
}

Status cudaStreamSynchronize(Stream stream) {
  std::optional<StreamId> id = streams::enter(stream);  // the legacy stream waits for the blocking ones
  if (!id) return done(Status::invalid_resource_handle);
  if (captures::forbids_wait(*id)) return done(Status::stream_capture_unsupported);
  activity::Call call(activity::Api::stream_synchronize);
  streams::synchronize(*id);
  return Status::success;
}

Status cudaStreamQuery(Stream stream) {
  std::optional<StreamId> id = streams::enter(stream);
  if (!id) return done(Status::invalid_resource_handle);
  if (captures::forbids_wait(*id)) return done(Status::stream_capture_unsupported);
  recorder::charge_call();
  return if_running(streams::is_idle(*id) ? Status::success : Status::not_ready);
}

Status cudaStreamWaitEvent(Stream stream, Event event, unsigned flags) {
  std::optional<StreamId> id = streams::enter(stream);
  if (!id || !events::find(event)) return done(Status::invalid_resource_handle);
  recorder::charge_call();
  return done(events::wait(*id, streams::find(stream)->device, event, flags & event_external));
}

Status cudaLaunchHostFunc(Stream stream, void (*function)(void*), void* data) {
  if (!function) return done(Status::invalid_value);
  std::optional<StreamId> id = streams::enter(stream);
  if (!id) return done(Status::invalid_resource_handle);
  launch_host_function(*id, [=] { function(data); });
  return Status::success;
}

Status cudaStreamAddCallback(Stream stream, void (*callback)(Stream, Status, void*), void* data, unsigned) {
  if (!callback) return done(Status::invalid_value);
  std::optional<StreamId> id = streams::enter(stream);
  if (!id) return done(Status::invalid_resource_handle);
  launch_host_function(*id, [=] { callback(stream, Status::success, data); });
  return Status::success;
}

}  // extern "C"

}  // namespace phantora::cudart
