#include "phantora/streams.h"

#include <algorithm>

#include "driver/types.h"
#include "phantora/capture.h"
#include "phantora/device.h"
#include "phantora/events.h"
#include "phantora/host_function.h"

namespace phantora::driver {

namespace {

constexpr int greatest_priority = -5;
constexpr int not_capturing = 0, capturing = 1, invalidated = 2;

template <typename Use>
Status with_stream(Stream stream, Use use) {
  std::optional<streams::Info> info = streams::find(stream);
  if (!info) return Status::invalid_handle;
  use(*info);
  return Status::success;
}

}  // namespace

extern "C" {

Status cuStreamCreateWithPriority(Stream* stream, unsigned flags, int priority) {
  if (!stream || flags > stream_non_blocking) return Status::invalid_value;
  int allowed = std::clamp(priority, greatest_priority, 0);
  *stream = streams::create(device::current(), flags == stream_non_blocking, allowed);
  return Status::success;
}

Status cuStreamCreate(Stream* stream, unsigned flags) { return cuStreamCreateWithPriority(stream, flags, 0); }

Status cuStreamDestroy_v2(Stream stream) { return streams::destroy(stream) ? Status::success : Status::invalid_handle; }

Status cuStreamSynchronize(Stream stream) {
  std::optional<StreamId> id = streams::enter(stream);
  if (!id) return Status::invalid_handle;
  if (captures::forbids_wait(*id)) return Status::stream_capture_unsupported;
  streams::synchronize(*id);
  return Status::success;
}

Status cuStreamQuery(Stream stream) {
  std::optional<StreamId> id = streams::enter(stream);
  if (!id) return Status::invalid_handle;
  if (captures::forbids_wait(*id)) return Status::stream_capture_unsupported;
  recorder::charge_call();
  return streams::is_idle(*id) ? Status::success : Status::not_ready;
}

Status cuStreamWaitEvent(Stream stream, Event event, unsigned flags) {
  std::optional<StreamId> id = streams::enter(stream);
  if (!id || !events::find(event)) return Status::invalid_handle;
  recorder::charge_call();
  return static_cast<Status>(events::wait(*id, streams::find(stream)->device, event, flags & event_external));
}

Status cuStreamGetPriority(Stream stream, int* priority) {
  return with_stream(stream, [&](const streams::Info& info) { *priority = info.priority; });
}

Status cuStreamGetFlags(Stream stream, unsigned* flags) {
  return with_stream(stream, [&](const streams::Info& info) { *flags = info.non_blocking ? stream_non_blocking : 0; });
}

Status cuStreamGetId(Stream stream, unsigned long long* id) {
  return with_stream(stream, [&](const streams::Info& info) { *id = info.id; });
}

Status cuStreamGetDevice(Stream stream, Device* device) {
  return with_stream(stream, [&](const streams::Info& info) { *device = info.device; });
}

Status cuStreamIsCapturing(Stream stream, int* status) {
  return with_stream(stream, [&](const streams::Info& info) {
    std::optional<captures::Info> capture = captures::info(info.id);
    *status = !capture ? not_capturing : capture->valid ? capturing : invalidated;
  });
}

Status cuLaunchHostFunc(Stream stream, void (*function)(void*), void* data) {
  std::optional<StreamId> id = streams::enter(stream);
  if (!id) return Status::invalid_handle;
  launch_host_function(*id, [=] { function(data); });
  return Status::success;
}

Status cuStreamAddCallback(Stream stream, void (*callback)(Stream, Status, void*), void* data, unsigned) {
  std::optional<StreamId> id = streams::enter(stream);
  if (!id) return Status::invalid_handle;
  launch_host_function(*id, [=] { callback(stream, Status::success, data); });
  return Status::success;
}

}  // extern "C"

}  // namespace phantora::driver
