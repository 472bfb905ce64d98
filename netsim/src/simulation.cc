#include "simulation.h"

#include <algorithm>
#include <stdexcept>

#include "speculation.h"

namespace phantora::netsim {

namespace {

constexpr int64_t kMostRanks = int64_t{1} << 24;

size_t checked_size(const char* what, int64_t size, int64_t most) {
  if (size > 0 && size <= most) return static_cast<size_t>(size);
  throw std::invalid_argument(std::string(what) + " is " + std::to_string(size) + ", must be within 1 .. " +
                              std::to_string(most));
}

}  // namespace

Simulation::Simulation(int64_t ranks, Fabric fabric, int64_t launch_queue_depth)
    : definitions_(checked_size("ranks", ranks, kMostRanks), fabric.capacities.size()),
      world_(definitions_, static_cast<size_t>(ranks), std::make_shared<const Fabric>(std::move(fabric)),
             checked_size("launch_queue_depth", launch_queue_depth, int64_t{1} << 32), timeline_) {
  for (int64_t i = 0; i < ranks; ++i) inlets_.emplace_back(RankId(i));
}

RankId Simulation::checked(int64_t rank) const {
  if (rank >= 0 && static_cast<size_t>(rank) < inlets_.size()) return RankId(rank);
  throw std::invalid_argument("rank " + std::to_string(rank) + " does not exist: there are " +
                              std::to_string(inlets_.size()) + " ranks");
}

void Simulation::define_device(int64_t rank, int64_t device, Slowdown slowdown) {
  definitions_.define_device(checked(rank), device, slowdown);
}

void Simulation::define_stream(int64_t rank, int64_t stream, int64_t device) {
  definitions_.define_stream(checked(rank), stream, device);
  world_.define_stream(RankId(rank), StreamId(stream));
}

void Simulation::define_kernel(int64_t rank, int64_t signature, KernelCost cost) {
  definitions_.define_kernel(checked(rank), signature, cost);
}

void Simulation::define_comm(int64_t comm, int64_t size) { world_.define_comm(definitions_.define_comm(comm, size)); }

void Simulation::define_call(int64_t rank, int64_t definition, int64_t comm, Call call) {
  definitions_.define_call(checked(rank), definition, comm, std::move(call));
}

void Simulation::define_abort(int64_t rank, int64_t definition, int64_t comm, int64_t member) {
  definitions_.define_abort(checked(rank), definition, comm, member);
}

void Simulation::define_host_group(int64_t rank, int64_t definition, int64_t group, int64_t size, int64_t cost_ns) {
  world_.define_host_group(definitions_.define_host_call(checked(rank), definition, group, size, cost_ns));
}

void Simulation::feed(int64_t rank, std::string_view batch) {
  if (world_.state().ranks[checked(rank)].closed) {
    throw std::invalid_argument("rank " + std::to_string(rank) + ": records after its end");
  }
  inlets_[static_cast<size_t>(rank)].feed(batch, world_);
}

void Simulation::close_rank(int64_t rank) { world_.close(checked(rank)); }

std::vector<Reply> Simulation::advance() {
  while (world_.step()) continue;
  std::vector<Reply> replies;
  for (const Answer& answer : world_.take_answers()) {
    const auto told = told_.find({answer.rank, answer.request});
    if (told == told_.end()) {
      replies.push_back({answer.rank, answer.request, answer.value, false});
      continue;
    }
    if (told->second != answer.value) {
      corrections_.push_back({answer.rank, answer.request, answer.value});
      ++corrected_replies_;
    }
    told_.erase(told);
  }
  return replies;
}

std::vector<Reply> Simulation::speculate() {
  std::vector<Reply> replies = advance();
  if (!replies.empty()) return replies;
  const auto told = [this](RankId rank, uint64_t request) { return told_.contains({rank, request}); };
  if (guess_) {
    *guess_ = world_;
  } else {
    guess_.emplace(world_);
  }
  for (const Answer& answer : earliest_answers(*guess_, told)) {
    told_.emplace(Request{answer.rank, answer.request}, answer.value);
    replies.push_back({answer.rank, answer.request, answer.value, true});
  }
  return replies;
}

Time Simulation::clock(int64_t rank) const { return world_.state().ranks[checked(rank)].lanes[kMainLane].clock; }

Time Simulation::committed() const {
  const State& state = world_.state();
  if (state.frontier < kNever) return state.frontier;
  Time last = timeline_.last();
  for (const Rank& rank : state.ranks) {
    for (const Lane& lane : rank.lanes) last = std::max(last, lane.clock);
  }
  return last;
}

}  // namespace phantora::netsim
