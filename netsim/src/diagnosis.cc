#include "diagnosis.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace phantora::netsim {

namespace {

constexpr int kMostSteps = 64;  // of a chain of streams that wait for one another

bool asks(Kind kind) {
  return kind == Kind::sync || kind == Kind::query || kind == Kind::event_time || kind == Kind::host_sync;
}

// A kernel at the head is under way, if nobody acts; what stands behind it may not be.
const Item& first_that_waits(const Stream& stream) {
  for (size_t i = 0; i < stream.queue.size(); ++i) {
    const Kind kind = stream.queue[i].kind;
    if (kind == Kind::collective || kind == Kind::stream_wait) return stream.queue[i];
  }
  return stream.queue.front();
}

// One that has ended may have left its place to another.
bool is_of(const Transfer& transfer, LaunchId launch) {
  return (transfer.sender.come && transfer.sender.launch == launch) ||
         (transfer.receiver.come && transfer.receiver.launch == launch);
}

}  // namespace

std::vector<Waiting> Diagnosis::waiting() const {
  std::vector<Waiting> out;
  for (const Rank& rank : state_.ranks) {
    add_requests(rank, out);
    for (const LaneId lane : rank.alive) add_lane(rank, lane, out);
  }
  std::stable_sort(out.begin(), out.end(), [](const Waiting& x, const Waiting& y) {
    return std::tuple(x.rank, x.since, x.lane, x.request) < std::tuple(y.rank, y.since, y.lane, y.request);
  });
  return out;
}

void Diagnosis::add_requests(const Rank& rank, std::vector<Waiting>& out) const {
  for (const Wait& wait : rank.waits) {
    if (wait.outstanding == 0 || wait.answered) continue;
    out.push_back({rank.id, wait.lane_number, wait.request, false, wait.since, why(rank, wait)});
  }
}

// A lane that waits for no answer of its own but does not go on.
void Diagnosis::add_lane(const Rank& rank, LaneId id, std::vector<Waiting>& out) const {
  const Lane& lane = rank.lanes[id];
  if (lane.state == Lane::State::stalled) {
    out.push_back({rank.id, lane.number, 0, true, lane.clock, why(rank, rank.streams[lane.stall], kMostSteps)});
  } else if (lane.state == Lane::State::running && !lane.program.empty()) {
    const Step& step = lane.program.front();
    out.push_back({rank.id, lane.number, asks(step.kind) ? step.b : 0, false, lane.next(),
                   Obstacle{.kind = Obstacle::Kind::lane}});
  }
}

std::vector<Obstacle> Diagnosis::held_up(RankId id) const {
  const Rank& rank = state_.ranks[id];
  std::vector<Obstacle> out;
  for (const Stream& stream : rank.streams) {
    if (!stream.queue.empty()) out.push_back(why(rank, stream, kMostSteps));
  }
  return out;
}

Obstacle Diagnosis::why(const Rank& rank, const Wait& wait) const {
  if (wait.kind == Kind::host_sync) {
    const HostGroupId group{wait.subject};
    return why(state_.host_groups[group], group, rank.id);
  }
  switch (wait.target) {
    case Target::stream:
      return why(rank, rank.streams[StreamId{wait.subject}], kMostSteps);
    case Target::recording:
      return why(rank, rank.recordings[RecordingId{wait.subject}], kMostSteps);
    case Target::device:
      break;
  }
  for (const Stream& stream : rank.streams) {
    if (stream.device == static_cast<int32_t>(wait.subject) && !stream.queue.empty())
      return why(rank, stream, kMostSteps);
  }
  return {};
}

// What the head of the stream's queue waits for.
Obstacle Diagnosis::why(const Rank& rank, const Stream& stream, int depth) const {
  if (depth == 0 || stream.queue.empty()) return {};  // streams may wait for one another in a circle
  const Item& head = first_that_waits(stream);
  if (head.kind == Kind::stream_wait) return why(rank, rank.recordings[RecordingId{head.subject}], depth - 1);
  if (head.kind == Kind::kernel) return {.kind = Obstacle::Kind::kernel, .definition = head.definition};
  return head.point_to_point ? why(state_.launches[LaunchId{head.subject}], head)
                             : why(state_.operations[OperationId{head.subject}], head);
}

Obstacle Diagnosis::why(const Rank& rank, const Recording& recording, int depth) const {
  if (!recording.issued) return {.kind = Obstacle::Kind::recording, .name = static_cast<int64_t>(recording.name)};
  return why(rank, rank.streams[recording.stream], depth);
}

// Where a member belongs that is not ready.
std::vector<uint32_t>& Diagnosis::lacks(CommId comm, uint32_t member, bool come, Obstacle& obstacle) const {
  if (state_.comms[comm].has_aborted(member)) return obstacle.gone;
  return come ? obstacle.busy : obstacle.absent;
}

Obstacle Diagnosis::why(const Operation& operation, const Item& item) const {
  Obstacle obstacle{.kind = Obstacle::Kind::collective,
                    .name = definitions_.comm_name(operation.comm),
                    .sequence = operation.sequence,
                    .definition = item.definition,
                    .member = item.member,
                    .mismatched = operation.mismatched};
  for (uint32_t i = 0; i < operation.members.size(); ++i) {
    const Operation::Member& member = operation.members[i];
    if (!member.ready) lacks(operation.comm, i, member.come, obstacle).push_back(i);
  }
  return obstacle;
}

// The first of its messages that is not under way.
Obstacle Diagnosis::why(const Launch& launch, const Item& item) const {
  Obstacle obstacle{.kind = Obstacle::Kind::transfers, .definition = item.definition, .member = item.member};
  for (const TransferId id : launch.transfers) {
    const Transfer& transfer = state_.transfers[id];
    if (!is_of(transfer, LaunchId{item.subject})) continue;
    obstacle.name = definitions_.comm_name(transfer.comm);
    if (!transfer.mismatched() && transfer.sender.ready && transfer.receiver.ready) continue;
    const bool sends = transfer.source == item.member;
    if (sends && transfer.eager) continue;
    const Transfer::Side& other = sends ? transfer.receiver : transfer.sender;
    obstacle.kind = sends ? Obstacle::Kind::send : Obstacle::Kind::receive;
    obstacle.sequence = transfer.sequence;
    obstacle.peer = sends ? transfer.destination : transfer.source;
    obstacle.mismatched = transfer.mismatched();
    if (!other.ready) lacks(transfer.comm, obstacle.peer, other.come, obstacle).push_back(obstacle.peer);
    break;
  }
  return obstacle;
}

Obstacle Diagnosis::why(const HostGroup& group, HostGroupId id, RankId rank) const {
  const auto calls = [&group](RankId member) {
    const auto known = group.calls.find(static_cast<uint32_t>(member));
    return known == group.calls.end() ? 0 : known->second;
  };
  const std::vector<RankId>& members = definitions_.host_group_members(id);
  Obstacle obstacle{.kind = Obstacle::Kind::host_group,
                    .name = definitions_.host_group_name(id),
                    .sequence = calls(rank) - 1,
                    .unheard = group.size - static_cast<uint32_t>(members.size())};
  for (const RankId member : members) {
    if (calls(member) < calls(rank)) obstacle.absent.push_back(static_cast<uint32_t>(member));
  }
  std::sort(obstacle.absent.begin(), obstacle.absent.end());
  return obstacle;
}

std::vector<Disagreement> Diagnosis::disagreements() const {
  std::vector<Disagreement> out;
  for (const Operation& operation : state_.operations) {
    if (operation.mismatched) out.push_back(disagreement(operation));
  }
  for (const Transfer& transfer : state_.transfers) {
    if (transfer.mismatched()) out.push_back(disagreement(transfer));
  }
  std::sort(out.begin(), out.end(), [](const Disagreement& x, const Disagreement& y) {
    const auto order = [](const Disagreement& d) {
      return std::tuple(d.comm, d.is_message, d.sequence, d.sides.front().front().member);
    };
    return order(x) < order(y);
  });
  return out;
}

Disagreement Diagnosis::disagreement(const Operation& operation) const {
  std::map<uint64_t, std::vector<Disagreement::Call>> by_key;
  for (uint32_t i = 0; i < operation.members.size(); ++i) {
    const Operation::Member& member = operation.members[i];
    if (member.come) by_key[member.key].push_back({i, member.rank, member.definition});
  }
  Disagreement found{definitions_.comm_name(operation.comm), operation.sequence, false, {}};
  for (auto& [key, side] : by_key) found.sides.push_back(std::move(side));
  std::sort(found.sides.begin(), found.sides.end(),
            [](const auto& x, const auto& y) { return x.front().member < y.front().member; });
  return found;
}

Disagreement Diagnosis::disagreement(const Transfer& transfer) const {
  const auto call = [](uint32_t member, const Transfer::Side& side) {
    return std::vector<Disagreement::Call>{{member, side.rank, side.definition}};
  };
  return {definitions_.comm_name(transfer.comm),
          transfer.sequence,
          true,
          {call(transfer.source, transfer.sender), call(transfer.destination, transfer.receiver)}};
}

}  // namespace phantora::netsim
