#include "fairness.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace phantora::netsim {

namespace {

struct Stop {
  double rate;
  LinkId link;
  auto operator<=>(const Stop&) const = default;
};

class Filling {
 public:
  Filling(const Component& component, Table<LinkId, Link>& links, Slab<FlowId, Flow>& flows)
      : links_(links), flows_(flows), open_(component.flows.size()) {
    for (const LinkId id : component.links) open_link(id);
    std::make_heap(stops_.begin(), stops_.end(), std::greater<>());
    for (const FlowId id : component.flows) {
      flows_[id].open = true;
      if (std::isfinite(flows_[id].activity->max_rate)) capped_.push_back(id);
    }
    std::sort(capped_.begin(), capped_.end(), [this](FlowId x, FlowId y) {
      return std::pair(flows_[x].activity->max_rate, flows_[x].serial) <
             std::pair(flows_[y].activity->max_rate, flows_[y].serial);
    });
  }

  void run() {
    while (open_ > 0) {
      const Flow* capped = least_capped();
      const bool has_link = find_least_link();
      if (capped && (!has_link || capped->activity->max_rate <= stops_.front().rate)) {
        close(capped_[next_capped_], std::max(level_, capped->activity->max_rate));
      } else {
        close_link();
      }
    }
  }

 private:
  void open_link(LinkId id) {
    Link& link = links_[id];
    link.room = link.capacity;
    link.open = static_cast<uint32_t>(link.shares.size());
    link.weight = 0;
    for (const Share& share : link.shares) link.weight += share.weight;
    if (link.open > 0) stops_.push_back({link.room / link.weight, id});
  }

  const Flow* least_capped() {
    while (next_capped_ < capped_.size() && !flows_[capped_[next_capped_]].open) ++next_capped_;
    return next_capped_ < capped_.size() ? &flows_[capped_[next_capped_]] : nullptr;
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
      const LinkId id = stops_.front().link;
      pop_stop();
      stops_.push_back({now, id});
      std::push_heap(stops_.begin(), stops_.end(), std::greater<>());
    }
    return false;
  }

  void pop_stop() {
    std::pop_heap(stops_.begin(), stops_.end(), std::greater<>());
    stops_.pop_back();
  }

  void close_link() {
    const Stop stop = stops_.front();
    level_ = std::max(level_, stop.rate);
    for (const Share& share : links_[stop.link].shares) {
      if (flows_[share.flow].open) close(share.flow, level_);
    }
  }

  void close(FlowId id, double rate) {
    Flow& flow = flows_[id];
    flow.open = false;
    flow.next_rate = rate;
    level_ = rate;
    --open_;
    for (const Use& use : flow.activity->links) {
      Link& link = links_[use.link];
      link.room -= use.weight * rate;
      link.weight -= use.weight;
      --link.open;
    }
  }

  Table<LinkId, Link>& links_;
  Slab<FlowId, Flow>& flows_;
  std::vector<Stop> stops_;     // a heap, least rate first; rates may be out of date, but never too high
  std::vector<FlowId> capped_;  // flows with a cap, by cap
  size_t next_capped_ = 0;
  size_t open_;
  double level_ = 0;  // rate at which the last flow was closed
};

}  // namespace

void fill(const Component& component, Table<LinkId, Link>& links, Slab<FlowId, Flow>& flows) {
  Filling(component, links, flows).run();
}

}  // namespace phantora::netsim
