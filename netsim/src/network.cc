#include "network.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <functional>

#include "fairness.h"

namespace phantora::netsim {

namespace {

// Ends are rounded up to whole nanoseconds; what is less than this past a whole one is taken for rounding of doubles.
constexpr double kRounding_ns = 1e-3;

Time duration(double bytes, double rate) {
  const double exact = std::ceil(bytes / rate - kRounding_ns);
  return exact < static_cast<double>(kLast) ? std::max<Time>(kLookahead, static_cast<Time>(exact)) : kLast;
}

}  // namespace

FlowNetwork::FlowNetwork(const std::vector<double>& capacities) {
  for (const double capacity : capacities) links_.add(Link{.capacity = capacity});
}

void FlowNetwork::begin(Owner owner, Precedence precedence, const Activity& activity, Time start) {
  assert(start >= now_);
  const bool joins = activity.volume_bytes > 0;
  const Time latency = joins ? activity.latency : std::max(kLookahead, activity.latency);
  timers_.push_back({after(start, latency), joins, owner, precedence, &activity});
  std::push_heap(timers_.begin(), timers_.end(), std::greater<>());
}

Time FlowNetwork::next(Time horizon) {
  const Time timer = timers_.empty() ? kNever : timers_.front().time;
  if (std::min(horizon, timer) > now_) settle();  // nothing more happens at now_
  const Time end = ends_.empty() ? kNever : flows_[ends_.top()].end;
  return std::min(timer, end);
}

void FlowNetwork::run(Time now, std::vector<Owner>& ended) {
  now_ = now;
  while (!ends_.empty() && flows_[ends_.top()].end <= now) {
    const FlowId id = ends_.top();
    ends_.pop(flows_);
    ended.push_back(flows_[id].owner);
    leave(id);
  }
  while (!timers_.empty() && timers_.front().time <= now) {
    const Timer timer = timers_.front();
    std::pop_heap(timers_.begin(), timers_.end(), std::greater<>());
    timers_.pop_back();
    if (timer.joins) {
      newcomers_.push_back(timer);
    } else {
      ended.push_back(timer.owner);
    }
  }
}

void FlowNetwork::leave(FlowId id) {
  for (const Use& use : flows_[id].activity->links) {
    std::vector<Share>& shares = links_[use.link].shares;
    shares.erase(std::find_if(shares.begin(), shares.end(), [id](const Share& share) { return share.flow == id; }));
    touch(use.link);
  }
  flows_.remove(id);
}

void FlowNetwork::settle() {
  if (newcomers_.empty() && touched_.empty()) return;
  std::sort(newcomers_.begin(), newcomers_.end(),
            [](const Timer& x, const Timer& y) { return x.precedence < y.precedence; });
  for (const Timer& newcomer : newcomers_) join(newcomer);
  newcomers_.clear();
  find_component();
  fill(component_, links_, flows_);
  for (const FlowId id : component_.flows) change_rate(id);
}

void FlowNetwork::join(const Timer& newcomer) {
  const FlowId id = flows_.add({.activity = newcomer.activity,
                                .owner = newcomer.owner,
                                .serial = serials_++,
                                .remaining = static_cast<double>(newcomer.activity->volume_bytes),
                                .since = now_,
                                .heap_place = EndHeap::kAbsent});
  for (const Use& use : newcomer.activity->links) {
    links_[use.link].shares.push_back({id, use.weight});
    touch(use.link);
  }
  if (newcomer.activity->links.empty()) unbound_.push_back(id);
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

void FlowNetwork::change_rate(FlowId id) {
  Flow& flow = flows_[id];
  if (flow.next_rate == flow.rate) return;
  flow.remaining = std::max(0.0, flow.remaining - flow.rate * static_cast<double>(now_ - flow.since));
  flow.rate = flow.next_rate;
  flow.since = now_;
  flow.end = after(now_, duration(flow.remaining, flow.rate));
  ends_.place(flows_, id);
}

}  // namespace phantora::netsim
