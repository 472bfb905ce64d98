#include "network.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "fairness.h"

namespace phantora::netsim {

namespace {

// Ends are rounded up to whole nanoseconds; what is less than this past a whole one is taken for rounding of doubles.
constexpr double kRounding_ns = 1e-3;

constexpr RankId kNobody{UINT32_MAX};  // leads background traffic, which joins after all others of its instant

Time duration(double amount, double speed) {
  const double exact = std::ceil(amount / speed - kRounding_ns);
  return exact < static_cast<double>(kLast) ? std::max<Time>(kLookahead, static_cast<Time>(exact)) : kLast;
}

}  // namespace

FlowNetwork::FlowNetwork(std::shared_ptr<const Fabric> fabric) : fabric_(std::move(fabric)) {
  for (const double capacity : fabric_->capacities) links_.add(Link{.capacity = capacity});
  uint64_t number = 0;
  for (const Fabric::Background& background : fabric_->background) {
    const FlowId id = flows_.add({.owner = {.kind = Owner::Kind::background},
                                  .precedence = {.rank = kNobody, .sequence = number++, .part = 0},
                                  .activity = &background.traffic,
                                  .remaining = std::numeric_limits<double>::infinity()});
    set(Timer::What::joins, background.start, id);
    set(Timer::What::ends, background.stop, id);
  }
}

void FlowNetwork::begin(Owner owner, Precedence precedence, const Activity& activity, Time start,
                        std::vector<DeviceId> devices) {
  assert(start >= now_);
  const bool enters = !devices.empty();
  const FlowId id = flows_.add({.owner = owner,
                                .precedence = precedence,
                                .activity = &activity,
                                .devices = std::move(devices),
                                .remaining = static_cast<double>(activity.volume_bytes)});
  if (enters) set(Timer::What::enters, start, id);
  if (activity.volume_bytes > 0) {
    set(Timer::What::joins, after(start, activity.latency), id);
  } else {
    set(Timer::What::ends, after(start, std::max(kLookahead, activity.latency)), id);
  }
}

void FlowNetwork::begin_kernel(Owner owner, Time work, Time start, DeviceId device) {
  assert(start >= now_);
  const FlowId id =
      flows_.add({.owner = owner, .devices = {device}, .remaining = static_cast<double>(work), .next_rate = 1});
  set(Timer::What::enters, start, id);
}

Time FlowNetwork::next(Time horizon) {
  Time next = timers_.empty() ? kNever : timers_.front().time;
  if (changes_made_ < fabric_->changes.size()) next = std::min(next, fabric_->changes[changes_made_].time);
  if (std::min(horizon, next) > now_) settle();  // nothing more happens at now_
  return ends_.empty() ? next : std::min(next, flows_[ends_.top()].end);
}

void FlowNetwork::run(Time now, std::vector<Owner>& ended) {
  now_ = now;
  while (!ends_.empty() && flows_[ends_.top()].end <= now) {
    const FlowId id = ends_.top();
    ends_.pop(flows_);
    end(id, ended);
  }
  change_capacities();
  while (!timers_.empty() && timers_.front().time <= now) fire(take_timer(), ended);
}

void FlowNetwork::set(Timer::What what, Time time, FlowId flow) {
  timers_.push_back({what, time, flow});
  std::push_heap(timers_.begin(), timers_.end(), std::greater<>());
}

FlowNetwork::Timer FlowNetwork::take_timer() {
  const Timer timer = timers_.front();
  std::pop_heap(timers_.begin(), timers_.end(), std::greater<>());
  timers_.pop_back();
  return timer;
}

void FlowNetwork::fire(const Timer& timer, std::vector<Owner>& ended) {
  switch (timer.what) {
    case Timer::What::enters:
      overlap_.enter(timer.flow, flows_[timer.flow]);
      return;
    case Timer::What::joins:
      newcomers_.push_back(timer.flow);
      return;
    case Timer::What::ends:
      end(timer.flow, ended);
      return;
  }
}

void FlowNetwork::change_capacities() {
  for (; changes_made_ < fabric_->changes.size(); ++changes_made_) {
    const Fabric::Change& change = fabric_->changes[changes_made_];
    if (change.time > now_) return;
    links_[change.link].capacity = change.capacity;
    touch(change.link);
  }
}

void FlowNetwork::end(FlowId id, std::vector<Owner>& ended) {
  if (flows_[id].owner.kind != Owner::Kind::background) ended.push_back(flows_[id].owner);
  leave(id);
}

void FlowNetwork::leave(FlowId id) {
  const Flow& flow = flows_[id];
  if (flow.rate > 0 && flow.activity) {
    for (const Use& use : flow.activity->links) {
      std::vector<Share>& shares = links_[use.link].shares;
      shares.erase(std::find_if(shares.begin(), shares.end(), [id](const Share& share) { return share.flow == id; }));
      touch(use.link);
    }
  }
  overlap_.leave(id, flow);
  flows_.remove(id);
}

void FlowNetwork::settle() {
  if (newcomers_.empty() && touched_.empty() && !overlap_.unsettled()) return;
  std::sort(newcomers_.begin(), newcomers_.end(),
            [this](FlowId x, FlowId y) { return flows_[x].precedence < flows_[y].precedence; });
  for (const FlowId newcomer : newcomers_) join(newcomer);
  newcomers_.clear();
  find_component();
  fill(component_, links_, flows_);
  overlap_.settle(flows_, changed_);
  for (const FlowId id : component_.flows) change_speed(id);
  for (const FlowId id : changed_) change_speed(id);
  changed_.clear();
}

void FlowNetwork::join(FlowId id) {
  Flow& flow = flows_[id];
  flow.serial = serials_++;
  for (const Use& use : flow.activity->links) {
    links_[use.link].shares.push_back({id, use.weight});
    touch(use.link);
  }
  if (flow.activity->links.empty()) unbound_.push_back(id);
}

void FlowNetwork::touch(LinkId link) {
  if (links_[link].visited) return;
  links_[link].visited = true;
  touched_.push_back(link);
}

// Everything connected to the touched links, which are those marked as visited so far.
void FlowNetwork::find_component() {
  component_.links.swap(touched_);
  touched_.clear();
  component_.flows.clear();
  for (const FlowId id : unbound_) visit(id);
  unbound_.clear();
  for (size_t i = 0; i < component_.links.size(); ++i) {
    for (const Share& share : links_[component_.links[i]].shares) visit(share.flow);
  }
  for (const LinkId id : component_.links) links_[id].visited = false;
  for (const FlowId id : component_.flows) flows_[id].visited = false;
}

void FlowNetwork::visit(FlowId id) {
  if (flows_[id].visited) return;
  flows_[id].visited = true;
  component_.flows.push_back(id);
  for (const Use& use : flows_[id].activity->links) {
    if (links_[use.link].visited) continue;
    links_[use.link].visited = true;
    component_.links.push_back(use.link);
  }
}

void FlowNetwork::change_speed(FlowId id) {
  Flow& flow = flows_[id];
  if (flow.next_rate == flow.rate && flow.next_slowdown == flow.slowdown) return;
  const double moved = flow.rate / flow.slowdown * static_cast<double>(now_ - flow.since);
  flow.remaining = std::max(0.0, flow.remaining - moved);
  flow.rate = flow.next_rate;
  flow.slowdown = flow.next_slowdown;
  flow.since = now_;
  if (flow.rate == 0 || std::isinf(flow.remaining)) return;  // has not joined yet, or goes on for ever
  flow.end = after(now_, duration(flow.remaining, flow.rate / flow.slowdown));
  ends_.place(flows_, id);
}

}  // namespace phantora::netsim
