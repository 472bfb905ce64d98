#include "diagnosis.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace phantora::netsim {

namespace {

constexpr int kMostSteps = 16;     // of a chain of streams that wait for one another
constexpr size_t kMostNames = 16;  // in a list

template <class T>
std::string number(T value) {
  return std::to_string(static_cast<int64_t>(value));
}

std::string list(const std::vector<uint32_t>& numbers) {
  std::string text;
  for (size_t i = 0; i < std::min(numbers.size(), kMostNames); ++i) text += (i ? ", " : "") + number(numbers[i]);
  if (numbers.size() > kMostNames) text += " and " + number(numbers.size() - kMostNames) + " more";
  return text;
}

// "members 0, 2"
std::string members(const std::vector<uint32_t>& numbers) {
  return (numbers.size() == 1 ? "member " : "members ") + list(numbers);
}

// What a rank asked for, in its own numbers.
std::string origin(RankId rank, uint32_t definition) {
  return " (rank " + number(rank) + ", definition " + number(definition) + ")";
}

const char* have(const std::vector<uint32_t>& numbers) { return numbers.size() == 1 ? " has" : " have"; }

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
    out.push_back({rank.id, wait.lane_number, wait.request, wait.since, why(rank, wait)});
  }
}

// A lane that waits for no answer of its own but does not go on.
void Diagnosis::add_lane(const Rank& rank, LaneId id, std::vector<Waiting>& out) const {
  const Lane& lane = rank.lanes[id];
  if (lane.state == Lane::State::stalled) {
    out.push_back({rank.id, lane.number, 0, lane.clock,
                   "launch queue of stream " + number(lane.stall) +
                       " is full: " + why(rank, rank.streams[lane.stall], kMostSteps)});
  } else if (lane.state == Lane::State::running && !lane.program.empty()) {
    const Step& step = lane.program.front();
    const bool asks = step.kind == Kind::sync || step.kind == Kind::query || step.kind == Kind::event_time ||
                      step.kind == Kind::host_sync;
    out.push_back(
        {rank.id, lane.number, asks ? step.b : 0, lane.next(), "another lane of the rank may still act before"});
  }
}

std::string Diagnosis::why(const Rank& rank, const Wait& wait) const {
  if (wait.kind == Kind::host_sync) {
    const HostGroupId group{wait.subject};
    return why(state_.host_groups[group], group, rank.id);
  }
  switch (wait.target) {
    case Target::stream:
      return why(rank, rank.streams[StreamId{wait.subject}], kMostSteps);
    case Target::recording:
      return why(rank, rank.recordings[RecordingId{wait.subject}], kMostSteps);
    default:
      break;
  }
  for (const Stream& stream : rank.streams) {
    if (stream.device == static_cast<int32_t>(wait.subject) && !stream.queue.empty())
      return why(rank, stream, kMostSteps);
  }
  return "device " + number(wait.subject);
}

// What the head of the stream's queue waits for.
std::string Diagnosis::why(const Rank& rank, const Stream& stream, int depth) const {
  if (depth == 0) return "a long chain of waits";
  if (stream.queue.empty()) return "nothing";
  const Item& head = stream.queue.front();
  if (head.kind == Kind::stream_wait) return why(rank, rank.recordings[RecordingId{head.subject}], depth - 1);
  return head.point_to_point ? why(state_.launches[LaunchId{head.subject}], head)
                             : why(state_.operations[OperationId{head.subject}], head);
}

std::string Diagnosis::why(const Rank& rank, const Recording& recording, int depth) const {
  if (!recording.issued) return "recording " + std::to_string(recording.name) + " has not been made";
  return why(rank, rank.streams[recording.stream], depth - 1);
}

std::string Diagnosis::why(const Operation& operation, const Item& item) const {
  std::vector<uint32_t> missing;
  std::vector<uint32_t> busy;
  for (uint32_t i = 0; i < operation.members.size(); ++i) {
    if (!operation.members[i].come) missing.push_back(i);
    if (operation.members[i].come && !operation.members[i].ready) busy.push_back(i);
  }
  std::string text = "collective " + std::to_string(operation.sequence) + " of comm " +
                     number(definitions_.comm_name(operation.comm)) + " as member " + number(item.member) +
                     origin(operation.members[item.member].rank, item.definition) + ": ";
  if (operation.mismatched) text += "members do not ask for the same; ";
  if (!missing.empty()) return text + members(missing) + have(missing) + " not come";
  if (!busy.empty()) return text + members(busy) + have(busy) + " other work before it";
  if (operation.mismatched) return text + "it never starts";
  return text + "under way since " + number(operation.start) + " ns";
}

std::string Diagnosis::why(const Launch& launch, const Item& item) const {
  for (const TransferId id : launch.transfers) {
    const Transfer& transfer = state_.transfers[id];
    if (transfer.sender.ready && transfer.receiver.ready) continue;
    const bool sends = transfer.source == item.member;
    const Transfer::Side& other = sends ? transfer.receiver : transfer.sender;
    return (sends ? "send " : "receive ") + std::to_string(transfer.sequence) + " of comm " +
           number(definitions_.comm_name(transfer.comm)) + (sends ? " to member " : " from member ") +
           number(sends ? transfer.destination : transfer.source) + " as member " + number(item.member) +
           origin(launch.rank, item.definition) + ": the " + (sends ? "receiver has " : "sender has ") +
           (other.come ? "other work before it" : "not come");
  }
  return "sends and receives under way as member " + number(item.member) + origin(launch.rank, item.definition);
}

std::string Diagnosis::why(const HostGroup& group, HostGroupId id, RankId rank) const {
  const auto calls = [&group](RankId member) {
    const auto known = group.calls.find(static_cast<uint32_t>(member));
    return known == group.calls.end() ? 0 : known->second;
  };
  std::vector<uint32_t> missing;
  const std::vector<RankId>& known = definitions_.host_group_members(id);
  for (const RankId member : known) {
    if (calls(member) <= calls(rank) - 1) missing.push_back(static_cast<uint32_t>(member));
  }
  std::sort(missing.begin(), missing.end());
  std::string text = "host synchronisation " + std::to_string(calls(rank) - 1) + " of group " +
                     number(definitions_.host_group_name(id)) + ": ";
  if (!missing.empty())
    text += (missing.size() == 1 ? "rank " : "ranks ") + list(missing) + have(missing) + " not come";
  if (known.size() == group.size) return text;
  return text + (missing.empty() ? "" : "; ") + number(group.size - known.size()) + " of its members have not shown up";
}

std::vector<std::string> Diagnosis::mismatches() const {
  std::vector<std::string> out;
  for (const Communicator& comm : state_.comms) {
    for (size_t i = 0; i < comm.open.size(); ++i) {
      if (comm.open[i] == kEndedOperation) continue;
      const Operation& operation = state_.operations[comm.open[i]];
      if (operation.mismatched) out.push_back(mismatch(operation));
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

// "collective 3 of comm 7: members 0, 1 (rank 0, definition 5) disagree with member 2 (rank 2, definition 6)"
std::string Diagnosis::mismatch(const Operation& operation) const {
  std::map<uint64_t, std::vector<uint32_t>> sides;
  for (uint32_t i = 0; i < operation.members.size(); ++i) {
    if (operation.members[i].come) sides[operation.members[i].key].push_back(i);
  }
  std::vector<std::vector<uint32_t>> by_first;
  for (auto& [key, side] : sides) by_first.push_back(std::move(side));
  std::sort(by_first.begin(), by_first.end());
  std::string text = "collective " + std::to_string(operation.sequence) + " of comm " +
                     number(definitions_.comm_name(operation.comm)) + ": ";
  for (size_t i = 0; i < by_first.size(); ++i) {
    const Operation::Member& first = operation.members[by_first[i].front()];
    text += (i ? " disagree with " : "") + members(by_first[i]) + origin(first.rank, first.definition);
  }
  return text;
}

}  // namespace phantora::netsim
