// Activities in time: they wait for their latency, share links fairly, and end.
//
// Times are exact whatever the steps in which time is advanced: what remains of a flow is only worked out when its rate
// changes, and its end is predicted once for each rate. All joins and ends of one instant are taken together: rates are
// worked out again when it is certain that nothing more happens at that instant (settle), so the order in which the
// core heard of them does not matter.
#pragma once

#include <vector>

#include "end_heap.h"
#include "flow.h"

namespace phantora::netsim {

class FlowNetwork {
 public:
  explicit FlowNetwork(const std::vector<double>& capacities);  // bytes per ns

  // `start` must not lie before the last instant that was run.
  void begin(Owner owner, Precedence precedence, const Activity& activity, Time start);

  // Time of the next event, kNever if there is none. Everything that starts before `horizon` must have begun.
  Time next(Time horizon);

  // Runs the events of the instant `now`, which is that given by next(). Appends the owners whose activities end.
  void run(Time now, std::vector<Owner>& ended);

  size_t flows() const { return flows_.live(); }

 private:
  // Known in advance: a flow joins after its latency; an activity without volume ends.
  struct Timer {
    Time time;
    bool joins;
    Owner owner;
    Precedence precedence;
    const Activity* activity;
    bool operator>(const Timer& other) const { return time > other.time; }
  };

  void leave(FlowId id);
  void settle();
  void join(const Timer& newcomer);
  void touch(LinkId link);
  void find_component();
  void visit(FlowId id);
  void change_rate(FlowId id);

  Table<LinkId, Link> links_;
  Slab<FlowId, Flow> flows_;
  EndHeap ends_;
  std::vector<Timer> timers_;     // a heap
  Time now_ = 0;                  // the last instant that was run
  std::vector<Timer> newcomers_;  // joined at now_, have no rate yet
  std::vector<FlowId> unbound_;   // of those, flows on no link
  std::vector<LinkId> touched_;   // links whose flows changed at now_
  uint64_t serials_ = 0;
  Component component_;  // scratch
};

}  // namespace phantora::netsim
