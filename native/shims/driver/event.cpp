#include "driver/types.h"
#include "phantora/device.h"
#include "phantora/events.h"
#include "phantora/streams.h"

namespace phantora::driver {

extern "C" {

Status cuEventCreate(Event* event, unsigned flags) {
  if (!event) return Status::invalid_value;
  if (flags & event_interprocess) return Status::not_supported;
  *event = events::create(device::current(), !(flags & event_disable_timing));
  return Status::success;
}

Status cuEventDestroy_v2(Event event) { return events::destroy(event) ? Status::success : Status::invalid_handle; }

Status cuEventRecordWithFlags(Event event, Stream stream, unsigned flags) {
  std::optional<StreamId> id = streams::enter(stream);
  if (!id) return Status::invalid_handle;
  recorder::charge_call();
  return events::record(event, *id, flags & event_external) ? Status::success : Status::invalid_handle;
}

Status cuEventRecord(Event event, Stream stream) { return cuEventRecordWithFlags(event, stream, 0); }

Status cuEventQuery(Event event) {
  std::optional<events::Info> info = events::find(event);
  if (!info) return Status::invalid_handle;
  if (info->captured) return Status::captured_event;
  recorder::charge_call();
  return events::is_complete(info->recording) ? Status::success : Status::not_ready;
}

Status cuEventSynchronize(Event event) {
  std::optional<events::Info> info = events::find(event);
  if (!info) return Status::invalid_handle;
  if (info->captured) return Status::captured_event;
  events::synchronize(info->recording);
  return Status::success;
}

Status cuEventElapsedTime_v2(float* milliseconds, Event start, Event end) {
  std::optional<events::Info> from = events::find(start), to = events::find(end);
  if (!milliseconds) return Status::invalid_value;
  bool usable = from && to && from->timing && to->timing && from->recording != 0 && to->recording != 0;
  if (!usable) return Status::invalid_handle;
  if (!events::is_complete(from->recording) || !events::is_complete(to->recording)) return Status::not_ready;
  int64_t elapsed_ns = recorder::event_time(to->recording) - recorder::event_time(from->recording);
  *milliseconds = static_cast<float>(static_cast<double>(elapsed_ns) * 1e-6);
  return Status::success;
}

}  // extern "C"

}  // namespace phantora::driver
