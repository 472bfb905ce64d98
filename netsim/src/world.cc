#include "world.h"

#include <algorithm>
#include <cassert>
#include <compare>

namespace phantora::netsim {

// When a lane acts next. Lanes of one rank act in this order.
struct World::Turn {
  Time time = kNever;
  uint64_t order = 0;
  LaneId lane{};
  auto operator<=>(const Turn&) const = default;
};

struct World::Choice {
  Turn first;    // the lane that acts next, if nothing blocked comes before it
  Turn second;   // and the one after it
  Turn blocked;  // before this no blocked lane acts
};

World::World(const Definitions& definitions, size_t ranks, std::shared_ptr<const Fabric> fabric,
             size_t launch_queue_depth, Timeline& timeline)
    : state_{.ranks = {},
             .bounds = {},
             .wakes = {},
             .touched = {},
             .comms = {},
             .operations = {},
             .transfers = {},
             .launches = {},
             .host_groups = {},
             .network = FlowNetwork(std::move(fabric))},
      definitions_(&definitions),
      launch_queue_depth_(launch_queue_depth),
      timeline_(&timeline) {
  for (size_t i = 0; i < ranks; ++i) {
    const RankId id = state_.ranks.add({});
    Rank& rank = state_.ranks[id];
    rank.id = id;
    add_lane(id, 0);
    rank.lanes[kMainLane].state = Lane::State::running;
    rank.alive.push_back(kMainLane);
    state_.bounds.add(0);
    state_.wakes.add(kNever);
    state_.touched.push_back(id);
  }
}

void World::define_stream(RankId rank, StreamId stream) {
  Table<StreamId, Stream>& streams = state_.ranks[rank].streams;
  if (!streams.contains(stream)) streams.resize(index(stream) + 1);
  const int32_t device = definitions_->device(rank, static_cast<uint32_t>(stream));
  streams[stream].device = device;
  streams[stream].overlap = define_device(rank, device);
}

// The network's id of a device on which what it does at once slows each other.
DeviceId World::define_device(RankId rank, int32_t number) {
  const Slowdown* slowdown = definitions_->slowdown(rank, number);
  if (!slowdown) return Stream::kAlone;
  std::vector<Device>& devices = state_.ranks[rank].devices;
  const auto known = std::find_if(devices.begin(), devices.end(), [&](const Device& d) { return d.number == number; });
  if (known != devices.end()) return known->overlap;
  devices.push_back({.number = number,
                     .overlap = state_.network.add_device(*slowdown),
                     .slows = *slowdown != Slowdown{},
                     .stream = {}});
  return devices.back().overlap;
}

void World::define_comm(CommId comm) {
  if (state_.comms.contains(comm)) return;
  assert(index(comm) == state_.comms.size());
  const uint32_t size = definitions_->comm_size(comm);
  state_.comms.add({.size = size,
                    .calls = std::vector<uint64_t>(size),
                    .open = {},
                    .first = 0,
                    .channels = {},
                    .aborts = std::vector<Time>(size, kNever)});
}

void World::define_host_group(HostGroupId group) {
  if (state_.host_groups.contains(group)) return;
  assert(index(group) == state_.host_groups.size());
  state_.host_groups.add({.size = definitions_->host_group_size(group), .calls = {}, .rounds = {}, .first = 0});
}

LaneId World::add_lane(RankId rank_id, uint16_t number) {
  Rank& rank = state_.ranks[rank_id];
  Lane lane;
  lane.number = number;
  lane.order = rank.lanes_named++;
  return rank.lanes.add(std::move(lane));
}

RecordingId World::add_recording(RankId rank, uint64_t name) {
  Recording recording;
  recording.name = name;
  return state_.ranks[rank].recordings.add(std::move(recording));
}

void World::append(RankId rank, LaneId lane, std::shared_ptr<const Batch> steps) {
  state_.ranks[rank].lanes[lane].program.append(std::move(steps));
  touch(state_.ranks[rank]);
}

void World::close(RankId rank) {
  state_.ranks[rank].closed = true;
  touch(state_.ranks[rank]);
}

void World::imagine_silence() {
  timeline_ = nullptr;
  for (Rank& rank : state_.ranks) {
    rank.closed = true;
    touch(rank);
  }
}

bool World::step() {
  run_touched();
  const Time horizon = *std::min_element(state_.bounds.begin(), state_.bounds.end());
  const Time next = state_.network.next(horizon);
  if (next <= horizon && next < kNever) {
    state_.network.run(next, ended_);
    for (const Owner owner : ended_) end_flow(owner, next);
    ended_.clear();
    advance_frontier(next);
    return true;
  }
  if (state_.frontier >= horizon) return false;
  advance_frontier(horizon);
  return true;
}

void World::advance_frontier(Time frontier) {
  state_.frontier = frontier;
  for (Rank& rank : state_.ranks) {
    if (state_.wakes[rank.id] <= frontier) touch(rank);
  }
}

void World::touch(Rank& rank) {
  if (rank.touched) return;
  rank.touched = true;
  state_.touched.push_back(rank.id);
}

void World::run_touched() {
  while (!state_.touched.empty()) {
    Rank& rank = state_.ranks[state_.touched.back()];
    state_.touched.pop_back();
    run(rank);
    rank.touched = false;
  }
}

// Executes the rank's records as far as their order is certain.
void World::run(Rank& rank) {
  while (run_lane(rank)) continue;
  answer_queries(rank);
}

bool World::run_lane(Rank& rank) {
  const Choice choice = choose(rank);
  state_.bounds[rank.id] = choice.first.time;
  state_.wakes[rank.id] = kNever;
  if (choice.first.time == kNever) return false;
  const LaneId id = choice.first.lane;
  Lane& lane = rank.lanes[id];
  if (lane.program.empty()) return false;  // it may issue something right now
  if (choice.blocked < choice.first || is_early(lane)) {
    state_.wakes[rank.id] = choice.first.time;
    return false;
  }
  const Turn limit = std::min(choice.second, choice.blocked);
  rank.lanes_changed = false;
  do {
    if (!execute(rank, id)) break;
    if (!ready_.empty()) go_on_ready();
  } while (!rank.lanes_changed && !lane.program.empty() && Turn{lane.next(), lane.order, id} < limit &&
           !is_early(lane));
  return true;
}

// An abort ends what the network has not ended by its time, so it has to wait until that is known.
bool World::is_early(const Lane& lane) const {
  return lane.program.front().kind == Kind::abort && lane.next() > state_.frontier;
}

World::Choice World::choose(const Rank& rank) const {
  const Time unknown = state_.frontier == kNever ? kNever : state_.frontier + kLookahead;
  Choice choice;
  for (const LaneId id : rank.alive) {
    const Lane& lane = rank.lanes[id];
    if (lane.blocked()) {
      choice.blocked = std::min(choice.blocked, Turn{std::max(unknown, lane.clock), lane.order, id});
      continue;
    }
    if (lane.program.empty() && rank.closed) continue;
    const Turn turn{lane.next(), lane.order, id};
    if (turn < choice.first) {
      choice.second = choice.first;
      choice.first = turn;
    } else {
      choice.second = std::min(choice.second, turn);
    }
  }
  return choice;
}

// A query whose moments are not known when the frontier has come to its time asks for something later: not done.
void World::answer_queries(Rank& rank) {
  Time wake = kNever;
  std::erase_if(rank.queries, [&](WaitId id) {
    Wait& wait = rank.waits[id];
    if (wait.since > state_.frontier) {
      wake = std::min(wake, wait.since);
      return false;
    }
    wait.answered = true;
    answer(rank, wait.request, 0, wait.since);
    return true;
  });
  state_.wakes[rank.id] = std::min(state_.wakes[rank.id], wake);
}

}  // namespace phantora::netsim
