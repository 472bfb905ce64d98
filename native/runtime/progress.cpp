#include "progress.h"

#include <algorithm>

namespace phantora {

namespace {

// A job that never waits for its device would remember its stream waits without end. The oldest may go: a later wait on
// the same stream says as much, only later.
constexpr size_t max_waits = 4096;

}  // namespace

Progress::Stream& Progress::at(StreamId stream) {
  if (stream >= streams_.size()) streams_.resize(stream + 1);
  return streams_[stream];
}

const Progress::Stream* Progress::find(StreamId stream) const {
  return stream < streams_.size() ? &streams_[stream] : nullptr;
}

void Progress::add_stream(StreamId stream, int device) { at(stream).device = device; }

void Progress::issued(StreamId stream) { ++at(stream).issued; }

void Progress::recorded(StreamId stream, RecordingId recording, int64_t now_ns) {
  recordings_[recording] = {{stream, at(stream).issued}, now_ns, {}};
}

void Progress::waited(StreamId stream, RecordingId recording) {
  auto found = recordings_.find(recording);
  if (found == recordings_.end()) return;
  Point on = found->second.point;
  if (at(on.stream).done >= on.items) return;
  Stream& waiting = at(stream);
  waiting.waits.push_back({++waiting.issued, on});
  if (waiting.waits.size() > max_waits) waiting.waits.pop_front();
}

void Progress::forget(RecordingId recording) { recordings_.erase(recording); }

void Progress::done(Point first) {
  std::vector<Point> open = {first};
  while (!open.empty()) {
    Point point = open.back();
    open.pop_back();
    Stream& stream = at(point.stream);
    if (point.items <= stream.done) continue;
    stream.done = point.items;
    while (!stream.waits.empty() && stream.waits.front().at <= point.items) {
      open.push_back(stream.waits.front().on);
      stream.waits.pop_front();
    }
  }
}

void Progress::told(Point point) {
  Stream& stream = at(point.stream);
  stream.told = std::max(stream.told, point.items);
}

void Progress::release(Point point) {
  Stream& stream = at(point.stream);
  stream.released = std::max(stream.released, point.items);
}

Progress::Point Progress::stream_point(StreamId stream) { return {stream, at(stream).issued}; }

std::optional<Progress::Point> Progress::recording_point(RecordingId recording) const {
  auto found = recordings_.find(recording);
  return found == recordings_.end() ? std::nullopt : std::optional(found->second.point);
}

std::vector<Progress::Point> Progress::device_points(int device) const {
  std::vector<Point> points;
  for (StreamId id = 0; id < streams_.size(); ++id) {
    if (streams_[id].device == device) points.push_back({id, streams_[id].issued});
  }
  return points;
}

void Progress::set_time(RecordingId recording, int64_t time_ns) {
  auto found = recordings_.find(recording);
  if (found != recordings_.end()) found->second.time_ns = time_ns;
}

bool Progress::is_stream_done(StreamId stream) const {
  const Stream* found = find(stream);
  return !found || found->knows(found->issued);
}

bool Progress::is_device_done(int device) const {
  return std::all_of(streams_.begin(), streams_.end(),
                     [device](const Stream& stream) { return stream.device != device || stream.knows(stream.issued); });
}

bool Progress::is_recording_done(RecordingId recording, int64_t now_ns) const {
  auto found = recordings_.find(recording);
  if (found == recordings_.end()) return true;  // never recorded, or forgotten: nothing to wait for
  const Recording& known = found->second;
  if (known.time_ns && *known.time_ns <= now_ns) return true;
  const Stream* stream = find(known.point.stream);
  return !stream || stream->knows(known.point.items);
}

bool Progress::was_waited_for(Point point) const {
  const Stream* stream = find(point.stream);
  return !stream || point.items <= stream->done || point.items <= stream->released;
}

std::optional<int64_t> Progress::time(RecordingId recording) const {
  auto found = recordings_.find(recording);
  return found == recordings_.end() ? std::nullopt : found->second.time_ns;
}

int64_t Progress::issue_time(RecordingId recording) const {
  auto found = recordings_.find(recording);
  return found == recordings_.end() ? 0 : found->second.issue_ns;
}

}  // namespace phantora
