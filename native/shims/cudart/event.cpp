#include "phantora/activity.h"
#include "phantora/events.h"

#include "cudart/error.h"
#include "phantora/device.h"
#include "phantora/streams.h"

namespace phantora::cudart {

extern "C" {

Status cudaEventCreateWithFlags(Event* event, unsigned flags) {
  if (!event) return done(Status::invalid_value);
  if (flags & event_interprocess) {
    fail("cudaEventCreateWithFlags of " PHANTORA_SONAME " was asked for an event that several processes share",
         "sharing events between processes is not emulated yet; move data between ranks with torch.distributed");
  }
  *event = events::create(device::current(), !(flags & event_disable_timing));
  return Status::success;
}

Status cudaEventCreate(Event* event) { return cudaEventCreateWithFlags(event, 0); }

Status cudaEventDestroy(Event event) {
  return done(events::destroy(event) ? Status::success : Status::invalid_resource_handle);
}

Status cudaEventRecordWithFlags(Event event, Stream stream, unsigned flags) {
  std::optional<StreamId> id = streams::enter(stream);
  if (!id) return done(Status::invalid_resource_handle);
  recorder::charge_call();
  bool recorded = events::record(event, *id, flags & event_external);
  return done(recorded ? Status::success : Status::invalid_resource_handle);
}

Status cudaEventRecord(Event event, Stream stream) { return cudaEventRecordWithFlags(event, stream, 0); }

Status cudaEventQuery(Event event) {
  std::optional<events::Info> info = events::find(event);
  if (!info) return done(Status::invalid_resource_handle);
  if (info->captured) return done(Status::captured_event);
  recorder::charge_call();
  return if_running(events::is_complete(info->recording) ? Status::success : Status::not_ready);
}

Status cudaEventSynchronize(Event event) {
  std::optional<events::Info> info = events::find(event);
  if (!info) return done(Status::invalid_resource_handle);
  if (info->captured) return done(Status::captured_event);
  activity::Call call(activity::Api::event_synchronize);
  events::synchronize(info->recording);
  return Status::success;
}

Status cudaEventElapsedTime(float* milliseconds, Event start, Event end) {
  std::optional<events::Info> from = events::find(start), to = events::find(end);
  if (!milliseconds) return done(Status::invalid_value);
  bool usable = from && to && from->timing && to->timing && from->recording != 0 && to->recording != 0;
  if (!usable) return done(Status::invalid_resource_handle);
  if (!events::is_complete(from->recording) || !events::is_complete(to->recording)) return done(Status::not_ready);
  int64_t elapsed_ns = recorder::event_time(to->recording) - recorder::event_time(from->recording);
  *milliseconds = static_cast<float>(static_cast<double>(elapsed_ns) * 1e-6);
  return Status::success;
}

}  // extern "C"

}  // namespace phantora::cudart
