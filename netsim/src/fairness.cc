#include "fairness.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace phantora::netsim {

namespace {

struct Stop {
  double rate;
  LinkId link;
  bool operator<(const Stop& other) const { return rate < other.rate || (rate == other.rate && link < other.link); }
  bool operator>(const Stop& other) const { return other < *this; }
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
      grants_[id].rate = Grant::kOpen;
      if (std::isfinite(demands_[id].max_rate)) capped_.push_back(id);
    }
    stops_.reserve(component.links.size());
    for (const LinkId id : component.links) open_link(id);
    std::make_heap(stops_.begin(), stops_.end(), std::greater<>());
    std::sort(capped_.begin(), capped_.end(), [this](FlowId x, FlowId y) {
      return std::pair(demands_[x].max_rate, demands_[x].serial) < std::pair(demands_[y].max_rate, demands_[y].serial);
    });
  }

  // False if a flow outside the component has more than its share of a link now.
  bool run() {
    if (overdrawn_) return false;
    while (open_ > 0) {
      const Demand* capped = least_capped();
      const bool has_link = find_least_link();
      if (capped && (!has_link || capped->max_rate <= stops_.front().rate)) {
        close(capped_[next_capped_], std::max(level_, capped->max_rate));
      } else if (!close_link()) {
        return false;
      }
    }
    return true;
  }

 private:
  void open_link(LinkId id) {
    Link& link = links_[id];
    double room = link.capacity, weight = 0;
    uint32_t open_flows = 0;
    bool gives = false;  // a flow that is not worked out has more than the least rate here
    // Without branches, which nobody could predict: adding nothing changes no bit.
    for (const Share& share : link.shares) {
      const double rate = grants_[share.flow].rate;
      const bool open = rate < 0;
      weight += share.weight * open;
      room -= share.weight * std::max(rate, 0.0);
      open_flows += open;
      gives |= rate > level_;
    }
    link.level = kUnlimited;
    link.room = room;
    link.weight = weight;
    link.open = open_flows;
    if (open_flows == 0) return;
    stops_.push_back({link.room / link.weight, id});
    overdrawn_ |= gives && stops_.back().rate < level_;
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
  void raise_top(double rate) {
    const Stop stop{rate, stops_.front().link};
    size_t place = 0;
    for (;;) {
      size_t child = 2 * place + 1;
      if (child >= stops_.size()) break;
      if (child + 1 < stops_.size() && stops_[child + 1] < stops_[child]) ++child;
      if (stop < stops_[child]) break;
      stops_[place] = stops_[child];
      place = child;
    }
    stops_[place] = stop;
  }

  void pop_stop() {
    std::pop_heap(stops_.begin(), stops_.end(), std::greater<>());
    stops_.pop_back();
  }

  bool close_link() {
    const Stop stop = stops_.front();
    level_ = std::max(level_, stop.rate);
    links_[stop.link].level = level_;
    for (const Share& share : links_[stop.link].shares) {
      const Grant& grant = grants_[share.flow];
      if (grant.open()) {
        close(share.flow, level_);
      } else if (grant.rate > level_ && grant.component != component_) {
        return false;
      }
    }
    return true;
  }

  void close(FlowId id, double rate) {
    grants_[id].rate = rate;
    level_ = rate;
    --open_;
    for (const Use& use : demands_[id].links) {
      Link& link = links_[use.link];
      link.room -= use.weight * rate;
      link.weight -= use.weight;
      --link.open;
    }
  }

  Table<LinkId, Link>& links_;
  const Table<FlowId, Demand>& demands_;
  Table<FlowId, Grant>& grants_;
  uint32_t component_;
  std::vector<Stop> stops_;     // a heap, least rate first; rates may be out of date, but never too high
  std::vector<FlowId> capped_;  // flows with a cap, by cap
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
