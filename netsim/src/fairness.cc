#include "fairness.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>

namespace phantora::netsim {

namespace {

struct Stop {
  double rate;
  LinkId link;
  bool operator>(const Stop& other) const { return rate > other.rate; }
};

class Filling {
 public:
  Filling(const Component& component, Table<LinkId, Link>& links, const Table<FlowId, Demand>& demands,
          Table<FlowId, Grant>& grants)
      : links_(links),
        demands_(demands),
        grants_(grants),
        component_(component.number),
        open_(component.flows.size()),
        level_(component.level) {
    for (const FlowId id : component.flows) {
      if (grants_[id].capped) capped_.push_back(id);
    }
    stops_.reserve(component.links.size());
    for (const LinkId id : component.links) add_stop(id);
    std::make_heap(stops_.begin(), stops_.end(), std::greater<>());
    std::sort(capped_.begin(), capped_.end(), [this](FlowId x, FlowId y) {
      return std::pair(demands_[x].max_rate(), demands_[x].serial) <
             std::pair(demands_[y].max_rate(), demands_[y].serial);
    });
  }

  // False if a flow outside the component has more than its share of a link now.
  bool run() {
    if (overdrawn_) return false;
    while (open_ > 0) {
      const Demand* capped = least_capped();
      const bool has_link = find_least_link();
      if (capped && (!has_link || capped->max_rate() <= stops_.front().rate)) {
        close(capped_[next_capped_], std::max(level_, capped->max_rate()));
      } else if (!close_link()) {
        return false;
      }
    }
    return true;
  }

 private:
  void add_stop(LinkId id) {
    Link& link = links_[id];
    link.level = kUnlimited;
    if (link.open == 0) return;
    if (link.open == link.shares.size()) link.room = link.capacity;  // exactly
    stops_.push_back({link.room / link.weight, id});
    overdrawn_ |= stops_.back().rate < level_ && gives(link);
  }

  // Whether a flow that is not worked out has more than the least rate on this link.
  bool gives(const Link& link) const {
    return std::any_of(link.shares.begin(), link.shares.end(),
                       [this](const Share& share) { return grants_[share.flow].rate > level_; });
  }

  const Demand* least_capped() {
    while (next_capped_ < capped_.size() && !grants_[capped_[next_capped_]].open()) ++next_capped_;
    return next_capped_ < capped_.size() ? &demands_[capped_[next_capped_]] : nullptr;
  }

  // Brings the link that is full first to the top of the heap. False if no link has open flows.
  bool find_least_link() {
    while (!stops_.empty()) {
      const Link& link = links_[stops_.front().link];
      if (link.open == 0) {
        pop_stop();
        continue;
      }
      const double now = std::max(level_, link.room / link.weight);
      if (now <= stops_.front().rate) return true;
      raise_top(now);
    }
    return false;
  }

  // The link at the top of the heap stops later than was thought.
  void raise_top(double rate) { sink({rate, stops_.front().link}); }

  void pop_stop() {
    const Stop last = stops_.back();
    stops_.pop_back();
    if (!stops_.empty()) sink(last);
  }

  // Puts a stop, from the top, where it belongs.
  void sink(const Stop& stop) {
    Stop* const heap = stops_.data();
    const size_t count = stops_.size();
    size_t place = 0;
    size_t child = 1;
    for (; child + 1 < count; child = 2 * place + 1) {
      child += heap[child + 1].rate < heap[child].rate;
      if (stop.rate <= heap[child].rate) break;
      heap[place] = heap[child];
      place = child;
    }
    if (child + 1 == count && heap[child].rate < stop.rate) {
      heap[place] = heap[child];
      place = child;
    }
    heap[place] = stop;
  }

  bool close_link() {
    const Stop stop = stops_.front();
    level_ = std::max(level_, stop.rate);
    Link& link = links_[stop.link];
    link.level = level_;
    // Without branches, which nobody could predict.
    closing_.resize(link.shares.size());
    FlowId* end = closing_.data();
    bool takes = false;
    for (const Share& share : link.shares) {
      const Grant& grant = grants_[share.flow];
      *end = share.flow;
      end += grant.open();
      takes |= (grant.rate > level_) & (grant.component != component_);
    }
    for (const FlowId* id = closing_.data(); id != end; ++id) {
      if (end - id > std::ptrdiff_t{Demand::kAhead}) demands_[id[Demand::kAhead]].prefetch();
      close(*id, level_);
    }
    return !takes;
  }

  void close(FlowId id, double rate) {
    grants_[id].rate = rate;
    level_ = rate;
    --open_;
    demands_[id].each_link([&](LinkId on, double weight) {
      Link& link = links_[on];
      link.room -= weight * rate;
      link.weight -= weight;
      --link.open;
    });
  }

  Table<LinkId, Link>& links_;
  const Table<FlowId, Demand>& demands_;
  Table<FlowId, Grant>& grants_;
  uint32_t component_;
  std::vector<Stop> stops_;     // a heap, least rate first; rates may be out of date, but never too high
  std::vector<FlowId> capped_;  // flows with a cap, by cap
  std::vector<FlowId> closing_;
  size_t next_capped_ = 0;
  size_t open_;
  double level_;  // rate at which the last flow was closed
  bool overdrawn_ = false;
};

}  // namespace

bool fill(const Component& component, Table<LinkId, Link>& links, const Table<FlowId, Demand>& demands,
          Table<FlowId, Grant>& grants) {
  return Filling(component, links, demands, grants).run();
}

}  // namespace phantora::netsim
