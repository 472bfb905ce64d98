// What each record does at its issue time.

#include <algorithm>

#include "world.h"

namespace phantora::netsim {

bool World::execute(Rank& rank, LaneId id) {
  Lane& lane = rank.lanes[id];
  const Step step = lane.program.front();
  const Time now = lane.next();
  const StreamId stream{step.stream};
  const bool works = step.kind == Kind::kernel || step.kind == Kind::collective;
  const bool launches = works && (step.flags & kWithinLaunch) == 0;
  if (launches && !has_room(rank, id, stream, now)) return false;
  lane.program.pop();
  lane.clock = now;
  Item item{.kind = step.kind, .launched = launches, .sequence = ++rank.executed, .issue = now};
  if (launches) rank.streams[stream].launches.issue();
  switch (step.kind) {
    case Kind::kernel:
      item.definition = static_cast<uint32_t>(step.a);
      item.duration = static_cast<Time>(step.b);
      item.later = (step.flags & kLaterLaunch) != 0;
      if (item.duration > 0 && rank.streams[stream].overlap != Stream::kAlone) occupy(rank, stream, item);
      issue(rank, stream, item);
      break;
    case Kind::collective: {
      const Call& call = *definitions_->call(rank.id, step.a);
      item.definition = static_cast<uint32_t>(step.a);
      if (definitions_->comm_size(call.comm) > 1) communicate(rank, rank.streams[stream]);
      issue(
          rank, stream,
          call.point_to_point() ? join_transfers(rank, stream, call, item) : join_collective(rank, stream, call, item));
      break;
    }
    case Kind::event_record:
      record_event(rank, step, now);
      break;
    case Kind::stream_wait:
      wait_for_event(rank, step, now);
      break;
    case Kind::mark:
      item.a = step.a;
      item.definition = static_cast<uint32_t>(step.b);
      issue(rank, stream, item);
      break;
    case Kind::sync:
    case Kind::query:
    case Kind::event_time:
      ask(rank, id, step, now);
      break;
    case Kind::host_sync:
      arrive(rank, id, step, now);
      break;
    case Kind::abort:
      abort(rank, step, now);
      break;
    case Kind::lane_begin:
      begin_lane(rank, LaneId(step.a), now);
      break;
    case Kind::lane_end:
      end_lane(rank, id);
      break;
    case Kind::memory:
      if (timeline_) {
        timeline_->add(Mark{now, rank.id, rank.executed, rank.streams[stream].device, step.kind, step.a, step.b});
      }
      break;
    case Kind::event_forget:
      rank.recordings[RecordingId(step.a)].forgotten = true;
      release(rank, RecordingId(step.a));
      break;
    case Kind::clock:
      break;
  }
  return true;
}

// Whether something can slow a kernel that is issued now. Until a device is first used for communication, and while all
// its kernels are on one stream, nothing can: then its ends are known at once, without regard to other ranks.
void World::occupy(Rank& rank, StreamId stream, Item& kernel) const {
  Device& device = device_of(rank, rank.streams[stream]);
  kernel.share = definitions_->kernel(rank.id, kernel.definition)->share;
  if (kernel.share > 0) {
    if (!device.stream) device.stream = stream;
    device.is_shared = device.is_shared || device.stream != stream;
  }
  kernel.overlaps = (device.communicates && device.slows) || (device.is_shared && kernel.share > 0);
}

void World::communicate(Rank& rank, const Stream& stream) {
  if (stream.overlap != Stream::kAlone) device_of(rank, stream).communicates = true;
}

Device& World::device_of(Rank& rank, const Stream& stream) {
  return *std::find_if(rank.devices.begin(), rank.devices.end(),
                       [&](const Device& device) { return device.overlap == stream.overlap; });
}

// False, and the lane stands still, while the stream has as many unfinished launches as its queue holds.
bool World::has_room(Rank& rank, LaneId id, StreamId stream_id, Time now) {
  Stream& stream = rank.streams[stream_id];
  if (stream.launches.unfinished(now) < launch_queue_depth_) return true;
  Lane& lane = rank.lanes[id];
  if (stream.launches.oldest_end_known()) {
    lane.base = after(lane.base, stream.launches.oldest_end() - now);
    return false;
  }
  lane.state = Lane::State::stalled;
  lane.clock = now;
  lane.stall = stream_id;
  stream.stalled.push_back(id);
  rank.lanes_changed = true;
  return false;
}

// A recording that something looked at before it was made completes kLookahead after it was made at the earliest: so an
// earlier look never finds it complete, whatever the core has heard of by then.
void World::record_event(Rank& rank, const Step& step, Time now) {
  const StreamId stream{step.stream};
  Recording& recording = rank.recordings[RecordingId(step.a)];
  recording.issued = true;
  recording.stream = stream;
  recording.time = recording.awaited_early ? after(now, kLookahead) : now;
  issue(rank, stream, {.kind = Kind::event_record, .subject = static_cast<uint32_t>(step.a), .issue = now});
}

void World::wait_for_event(Rank& rank, const Step& step, Time now) {
  Recording& recording = rank.recordings[RecordingId(step.a)];
  if (!recording.issued) recording.awaited_early = true;
  issue(rank, StreamId(step.stream),
        {.kind = Kind::stream_wait, .subject = static_cast<uint32_t>(step.a), .issue = now});
}

void World::ask(Rank& rank, LaneId lane, const Step& step, Time now) {
  const Target target = step.kind == Kind::event_time ? Target::recording : Target(step.flags);
  const uint32_t subject = target == Target::recording ? static_cast<uint32_t>(step.a) : step.stream;
  const WaitId wait = rank.waits.add({.kind = step.kind,
                                      .target = target,
                                      .lane = lane,
                                      .lane_number = rank.lanes[lane].number,
                                      .subject = subject,
                                      .request = step.b,
                                      .since = now,
                                      .latest = 0,
                                      .outstanding = 1});
  switch (target) {
    case Target::stream:
      ask_stream(rank, wait, rank.streams[StreamId(step.stream)]);
      break;
    case Target::recording:
      ask_recording(rank, wait, RecordingId(step.a));
      break;
    case Target::device:
      for (Stream& stream : rank.streams) {
        if (stream.device == static_cast<int32_t>(step.stream)) ask_stream(rank, wait, stream);
      }
      break;
  }
  if (notify(rank, wait, 0)) return;  // all moments have been asked for, and are known
  if (step.kind == Kind::query) rank.queries.push_back(wait);
  if (step.kind != Kind::sync) return;
  rank.lanes[lane].state = Lane::State::waiting;
  rank.lanes[lane].wait = wait;
  rank.lanes_changed = true;
}

void World::ask_stream(Rank& rank, WaitId wait, Stream& stream) {
  Wait& waiting = rank.waits[wait];
  if (stream.queue.empty()) {
    waiting.latest = std::max(waiting.latest, stream.idle_at);
    return;
  }
  ++waiting.outstanding;
  stream.queue.push({.kind = Kind::sync, .subject = static_cast<uint32_t>(wait), .issue = waiting.since});
}

void World::ask_recording(Rank& rank, WaitId wait, RecordingId id) {
  Recording& recording = rank.recordings[id];
  Wait& waiting = rank.waits[wait];
  if (recording.completed) {
    waiting.latest = std::max(waiting.latest, recording.time);
    release(rank, id);
    return;
  }
  if (!recording.issued) recording.awaited_early = true;
  ++waiting.outstanding;
  recording.waiters.push_back({false, static_cast<uint32_t>(wait)});
}

// One of the moments that a request waits for is known. True if it was the last.
bool World::notify(Rank& rank, WaitId id, Time moment) {
  Wait& wait = rank.waits[id];
  wait.latest = std::max(wait.latest, moment);
  if (--wait.outstanding > 0) return false;
  complete(rank, id);
  return true;
}

void World::complete(Rank& rank, WaitId id) {
  const Wait wait = rank.waits[id];
  rank.waits.remove(id);
  switch (wait.kind) {
    case Kind::query:
      std::erase(rank.queries, id);
      if (!wait.answered) answer(rank, wait.request, wait.latest <= wait.since ? 1 : 0, wait.since);
      return;
    case Kind::event_time:
      answer(rank, wait.request, wait.latest, std::max(wait.since, wait.latest));
      return;
    default:
      break;
  }
  Lane& lane = rank.lanes[wait.lane];
  lane.base = lane.clock = std::max(wait.since, wait.latest);
  lane.state = Lane::State::running;
  rank.lanes_changed = true;
  touch(rank);
  answer(rank, wait.request, lane.clock, lane.clock);
}

void World::arrive(Rank& rank, LaneId lane, const Step& step, Time now) {
  const HostCall& call = *definitions_->host_call(rank.id, step.a);
  HostGroup& group = state_.host_groups[call.group];
  const WaitId wait = rank.waits.add({.kind = Kind::host_sync,
                                      .target = Target::stream,
                                      .lane = lane,
                                      .lane_number = rank.lanes[lane].number,
                                      .subject = static_cast<uint32_t>(call.group),
                                      .request = step.b,
                                      .since = now,
                                      .latest = 0,
                                      .outstanding = 1});
  rank.lanes[lane].state = Lane::State::waiting;
  rank.lanes[lane].wait = wait;
  rank.lanes_changed = true;
  const uint64_t number = group.calls[static_cast<uint32_t>(rank.id)]++;
  while (group.first + group.rounds.size() <= number) group.rounds.push({});
  HostGroup::Round& round = group.rounds[number - group.first];
  round.arrivals.push_back({rank.id, wait});
  round.latest = std::max(round.latest, now);
  round.cost = std::max(round.cost, call.cost);
  if (round.arrivals.size() < group.size) return;
  const HostGroup::Round complete = std::move(round);  // members arrive in order, so it is the front
  group.rounds.pop();
  ++group.first;
  const Time end = after(complete.latest, std::max(kLookahead, complete.cost));
  for (const auto& [member, request] : complete.arrivals) notify(state_.ranks[member], request, end);
}

void World::begin_lane(Rank& rank, LaneId id, Time now) {
  Lane& lane = rank.lanes[id];
  lane.state = Lane::State::running;
  lane.base = lane.clock = now;
  rank.alive.push_back(id);
  rank.lanes_changed = true;
}

void World::end_lane(Rank& rank, LaneId id) {
  std::erase(rank.alive, id);
  if (id != kMainLane) rank.lanes.remove(id);
  rank.lanes_changed = true;
}

void World::answer(const Rank& rank, uint64_t request, int64_t value, Time at) {
  answers_.push_back({rank.id, request, value, at});
}

}  // namespace phantora::netsim
