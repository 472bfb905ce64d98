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
  const double exact = amount / speed - kRounding_ns;
  if (exact >= static_cast<double>(kLast)) return kLast;
  const auto whole = static_cast<Time>(exact);
  return std::max(kLookahead, whole + (static_cast<double>(whole) < exact));
}

}  // namespace

FlowNetwork::FlowNetwork(std::shared_ptr<const Fabric> fabric) : fabric_(std::move(fabric)) {
  for (const double capacity : fabric_->capacities) links_.add(Link{.capacity = capacity});
  uint64_t number = 0;
  for (const Fabric::Background& background : fabric_->background) {
    const FlowId id = add({.remaining = std::numeric_limits<double>::infinity(),
                           .owner = {.kind = Owner::Kind::background},
                           .activity = &background.traffic,
                           .precedence = {.rank = kNobody, .sequence = number++, .part = 0}});
    set(Timer::What::joins, background.start, id);
    set(Timer::What::ends, background.stop, id);
  }
}

FlowId FlowNetwork::begin(Owner owner, Precedence precedence, const Activity& activity, Time start,
                          std::vector<DeviceId> devices) {
  assert(start >= now_);
  const bool enters = !devices.empty();
  const FlowId id = add({.remaining = static_cast<double>(activity.volume_bytes),
                         .owner = owner,
                         .activity = &activity,
                         .precedence = precedence,
                         .devices = std::move(devices)});
  if (enters) set(Timer::What::enters, start, id);
  if (activity.volume_bytes > 0) {
    set(Timer::What::joins, after(start, activity.latency), id);
  } else {
    set(Timer::What::ends, after(start, std::max(kLookahead, activity.latency)), id);
  }
  return id;
}

void FlowNetwork::cancel(FlowId id, Time now) {
  assert(now_ == now || (now_ < now && newcomers_.empty() && touched_.empty() && !overlap_.unsettled()));
  now_ = now;
  std::erase_if(timers_, [id](const Timer& timer) { return timer.flow == id; });
  std::make_heap(timers_.begin(), timers_.end(), std::greater<>());
  std::erase(newcomers_, id);
  ends_.remove(id);
  overlap_.forget(id);
  leave(id);
}

void FlowNetwork::begin_kernel(Owner owner, Time work, Time start, DeviceId device, uint16_t share) {
  assert(start >= now_);
  const FlowId id = add({.remaining = static_cast<double>(work), .share = share, .owner = owner, .devices = {device}});
  grants_[id].rate = 1;
  set(Timer::What::enters, start, id);
}

FlowId FlowNetwork::add(Flow flow) {
  const Activity* activity = flow.activity;
  const FlowId id = flows_.add(std::move(flow));
  if (!demands_.contains(id)) {
    demands_.resize(index(id) + 1);
    grants_.resize(index(id) + 1);
  }
  demands_[id] = activity ? Demand(*activity) : Demand{};
  grants_[id] = {.capped = activity && std::isfinite(activity->max_rate)};
  return id;
}

Time FlowNetwork::next(Time horizon) {
  Time next = timers_.empty() ? kNever : timers_.front().time;
  if (changes_made_ < fabric_->changes.size()) next = std::min(next, fabric_->changes[changes_made_].time);
  if (std::min(horizon, next) > now_) settle();  // nothing more happens at now_
  return ends_.empty() ? next : std::min(next, ends_.first());
}

void FlowNetwork::run(Time now, std::vector<Owner>& ended) {
  now_ = now;
  while (!ends_.empty() && ends_.first() <= now) {
    const FlowId id = ends_.top();
    ends_.pop();
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
    links_[change.link].level = 0;  // nothing is known of it
  }
}

void FlowNetwork::end(FlowId id, std::vector<Owner>& ended) {
  if (flows_[id].owner.kind != Owner::Kind::background) ended.push_back(flows_[id].owner);
  leave(id);
}

void FlowNetwork::leave(FlowId id) {
  const Flow& flow = flows_[id];
  if (flow.speed > 0) {
    demands_[id].each_link([&](LinkId link, double) {
      std::vector<Share>& shares = links_[link].shares;
      shares.erase(std::find_if(shares.begin(), shares.end(), [id](const Share& share) { return share.flow == id; }));
      touch(link);
    });
  }
  overlap_.leave(id, flow);
  flows_.remove(id);
}

void FlowNetwork::settle() {
  if (newcomers_.empty() && touched_.empty() && !overlap_.unsettled()) return;
  std::sort(newcomers_.begin(), newcomers_.end(),
            [this](FlowId x, FlowId y) { return flows_[x].precedence < flows_[y].precedence; });
  for (const FlowId newcomer : newcomers_) join(newcomer);
  find_component();
  if (!fill(component_, links_, demands_, grants_)) {
    widen_component();
    fill(component_, links_, demands_, grants_);
  }
  overlap_.settle(flows_, changed_);
  for (const FlowId id : component_.flows) change_speed(id);
  for (const FlowId id : changed_) change_speed(id);
  changed_.clear();
}

void FlowNetwork::join(FlowId id) {
  demands_[id].serial = serials_++;
  grants_[id].rate = kUnlimited;
  demands_[id].each_link([&](LinkId link, double weight) {
    links_[link].shares.push_back({id, weight});
    touch(link);
  });
}

void FlowNetwork::touch(LinkId link) {
  if (links_[link].component == Link::kTouched) return;
  links_[link].component = Link::kTouched;
  touched_.push_back(link);
}

// The least rate at which filling goes another way than it did before the touched links changed: the least at which one
// of them was full, or will be. Those that will be full there get it as their level.
double FlowNetwork::first_change() {
  double level = kUnlimited;
  for (const FlowId id : newcomers_) level = std::min(level, demands_[id].max_rate());
  full_at_.clear();
  for (const LinkId id : touched_) {
    full_at_.push_back(full_at(links_[id]));
    level = std::min({level, links_[id].level, full_at_.back()});
  }
  for (size_t i = 0; i < touched_.size(); ++i) {
    if (full_at_[i] <= level) links_[touched_[i]].level = level;
  }
  return level;
}

// The rate at which the link would be full if its flows kept their rates, but for those that can have more and
// newcomers: the least solution of  sum of w_f * min(r_f, rate) = capacity,  from below.
double FlowNetwork::full_at(const Link& link) const {
  double rate = 0;
  for (;;) {
    double room = link.capacity;
    double weight = 0;
    for (const auto& [id, share] : link.shares) {
      const double has = grants_[id].rate;
      const bool keeps = has < rate;
      room -= share * (keeps ? has : 0.0);
      weight += share * !keeps;
    }
    if (weight == 0) return kUnlimited;
    if (room / weight <= rate) return rate;
    rate = room / weight;
  }
}

// What is connected to the touched links and the newcomers by links that are full, and by flows whose rates may change:
// links that are not full hand nothing on, as long as they do not become so.
void FlowNetwork::find_component() {
  component_.level = first_change();
  if (++component_.number == Link::kTouched) component_.number = 1;
  component_.flows.clear();
  std::sort(touched_.begin(), touched_.end());  // flows that end at one instant do so in no particular order
  component_.links.swap(touched_);
  touched_.clear();
  for (const LinkId id : component_.links) {
    links_[id].component = component_.number;
    links_[id].room = room_left(links_[id]);
    links_[id].weight = 0;
    links_[id].open = 0;
  }
  for (const FlowId id : newcomers_) {
    component_.flows.push_back(id);
    grants_[id].component = component_.number;
    open(id, 0);
  }
  newcomers_.clear();
  for (size_t i = 0; i < component_.links.size(); ++i) {
    const Link& link = links_[component_.links[i]];
    if (link.level < kUnlimited) visit_flows(link);
  }
}

double FlowNetwork::room_left(const Link& link) const {
  double room = link.capacity;
  for (const auto& [id, share] : link.shares) {
    const double rate = grants_[id].rate;
    room -= share * (rate < kUnlimited ? rate : 0.0);
  }
  return room;
}

// One of its links became full: what is connected by any link.
void FlowNetwork::widen_component() {
  for (const LinkId id : component_.links) {
    links_[id].weight = 0;
    links_[id].open = 0;
  }
  for (const FlowId id : component_.flows) open(id, std::max(0.0, grants_[id].rate));
  for (size_t i = 0; i < component_.links.size(); ++i) visit_flows(links_[component_.links[i]]);
}

void FlowNetwork::visit_flows(const Link& link) {
  const size_t known = component_.flows.size();
  component_.flows.resize(known + link.shares.size());
  FlowId* end = component_.flows.data() + known;
  const uint32_t number = component_.number;
  const double level = component_.level;
  // Without branches, which nobody could predict.
  for (const Share& share : link.shares) {
    Grant& grant = grants_[share.flow];
    const bool fresh = (grant.component != number) & (grant.rate >= level);
    *end = share.flow;
    end += fresh;
    grant.component ^= (grant.component ^ number) & -uint32_t{fresh};
  }
  component_.flows.resize(end - component_.flows.data());
  for (size_t i = known; i < component_.flows.size(); ++i) {
    if (i + Demand::kAhead < component_.flows.size()) demands_[component_.flows[i + Demand::kAhead]].prefetch();
    open(component_.flows[i], grants_[component_.flows[i]].rate);
  }
}

// Gives back what the flow had on its links, which belong to the component now.
void FlowNetwork::open(FlowId id, double rate) {
  grants_[id].rate = Grant::kOpen;
  demands_[id].each_link([&](LinkId on, double weight) {
    Link& link = links_[on];
    if (link.component != component_.number) {
      link.component = component_.number;
      link.weight = 0;
      link.open = 0;
      component_.links.push_back(on);
    }
    link.room += weight * rate;
    link.weight += weight;
    ++link.open;
  });
}

void FlowNetwork::change_speed(FlowId id) {
  Flow& flow = flows_[id];
  const double speed = grants_[id].rate / flow.slowdown;
  if (speed == flow.speed) return;
  const double moved = flow.speed * static_cast<double>(now_ - flow.since);
  flow.remaining = std::max(0.0, flow.remaining - moved);
  flow.speed = speed;
  flow.since = now_;
  if (flow.remaining < kUnlimited) ends_.place(id, after(now_, duration(flow.remaining, speed)));
}

}  // namespace phantora::netsim
