// How streams get through what was issued to them.

#include <algorithm>

#include "world.h"

namespace phantora::netsim {

void World::issue(Rank& rank, StreamId id, const Item& item) {
  Stream& stream = rank.streams[id];
  if (!stream.queue.empty() || !reach(rank, id, item)) stream.queue.push(item);
}

// Everything before the item has ended at idle_at. True when the item's own end is known and the stream goes on.
bool World::reach(Rank& rank, StreamId id, const Item& item) {
  Stream& stream = rank.streams[id];
  const Time ready = std::max(stream.idle_at, item.issue);
  switch (item.kind) {
    case Kind::kernel:
      if (item.overlaps) {
        stream.head_start = ready;
        state_.network.begin_kernel({Owner::Kind::kernel, static_cast<uint32_t>(rank.id), id}, item.duration, ready,
                                    stream.overlap, item.share);
        return false;
      }
      end_launch(rank, id, item, ready, after(ready, item.duration));
      return true;
    case Kind::collective:
      if (const std::optional<Time> aborted = abort_of(rank, item)) {
        give_up(item, *aborted);
        end_launch(rank, id, item, ready, std::max(ready, after(*aborted, kLookahead)));
        return true;
      }
      stream.head_start = ready;
      return item.point_to_point ? reach_transfers(rank, id, item, ready) : reach_collective(item, ready);
    case Kind::event_record:
      complete_recording(rank, RecordingId{item.subject}, stream.idle_at);
      return true;
    case Kind::stream_wait: {
      Recording& recording = rank.recordings[RecordingId{item.subject}];
      if (!recording.completed) {
        recording.waiters.push_back({true, static_cast<uint32_t>(id)});
        return false;
      }
      stream.idle_at = std::max(stream.idle_at, recording.time);
      release(rank, RecordingId{item.subject});
      return true;
    }
    case Kind::mark:
      if (timeline_)
        timeline_->add(Mark{ready, rank.id, item.sequence, stream.device, item.kind, item.a, item.definition});
      return true;
    default:  // Kind::sync
      notify(rank, WaitId{item.subject}, stream.idle_at);
      return true;
  }
}

void World::end_launch(Rank& rank, StreamId id, const Item& item, Time start, Time end) {
  Stream& stream = rank.streams[id];
  stream.idle_at = end;
  if (item.launched) stream.launches.ended(end);
  if (timeline_) {
    timeline_->add(Node{end, rank.id, item.sequence, item.issue, start, stream.device, id, item.definition, item.kind,
                        item.later});
  }
  if (stream.stalled.empty()) return;
  for (const LaneId lane : stream.stalled) rank.lanes[lane].state = Lane::State::running;
  stream.stalled.clear();
  rank.lanes_changed = true;
  touch(rank);
}

// The collective or kernel at the head of the stream's queue ends.
void World::end_head(RankId rank_id, StreamId id, Time end) {
  Rank& rank = state_.ranks[rank_id];
  Stream& stream = rank.streams[id];
  const Item item = stream.queue.front();
  stream.queue.pop();
  end_launch(rank, id, item, stream.head_start, end);
  go_on(rank, id);
}

void World::go_on(Rank& rank, StreamId id) {
  Ring<Item>& queue = rank.streams[id].queue;
  while (!queue.empty()) {
    const Item item = queue.front();
    if (!reach(rank, id, item)) return;
    queue.pop();
  }
}

// Streams whose wait at the head is over. A list rather than recursion: chains of waits may be long.
void World::go_on_ready() {
  while (!ready_.empty()) {
    const StreamRef ref = ready_.back();
    ready_.pop_back();
    go_on(state_.ranks[ref.rank], ref.stream);
  }
}

void World::complete_recording(Rank& rank, RecordingId id, Time time) {
  Recording& recording = rank.recordings[id];
  recording.completed = true;
  recording.time = std::max(recording.time, time);
  const Time completion = recording.time;
  const std::vector<Recording::Waiter> waiters = std::exchange(recording.waiters, {});
  for (const Recording::Waiter& waiter : waiters) {
    if (waiter.is_stream) {
      ready_.push_back({rank.id, StreamId{waiter.id}});
    } else {
      notify(rank, WaitId{waiter.id}, completion);
      release(rank, id);
    }
  }
  release(rank, id);
}

// A reference is gone; a forgotten recording goes with its last.
void World::release(Rank& rank, RecordingId id) {
  Recording& recording = rank.recordings[id];
  if (--recording.references == 0 && recording.forgotten) rank.recordings.remove(id);
}

}  // namespace phantora::netsim
