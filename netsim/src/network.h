// Flows in time: they wait for their latency, share links fairly, and end.
//
// Times are exact whatever the steps in which time is advanced: what remains of a flow is only worked out when its
// speed changes, and its end is predicted once for each speed. All joins and ends of one instant are taken together:
// speeds are worked out again when it is certain that nothing more happens at that instant (settle), so the order in
// which the core heard of them does not matter.
#pragma once

#include <memory>
#include <vector>

#include "end_heap.h"
#include "fabric.h"
#include "flow.h"
#include "overlap.h"

namespace phantora::netsim {

class FlowNetwork {
 public:
  explicit FlowNetwork(std::shared_ptr<const Fabric> fabric);

  DeviceId add_device(Slowdown slowdown) { return overlap_.add(slowdown); }

  // An activity, which may be carried by devices where it meets kernels. `start` must not lie before the last instant
  // that was run.
  FlowId begin(Owner owner, Precedence precedence, const Activity& activity, Time start, std::vector<DeviceId> devices);
  // It goes, and does not end. Nothing may happen any more, and nothing be settled, at an instant before `now`.
  void cancel(FlowId id, Time now);
  // A kernel that meets communication or other kernels on its device; alone it would take `work` > 0 ns.
  void begin_kernel(Owner owner, Time work, Time start, DeviceId device, uint16_t share);

  // Time of the next event, kNever if there is none. Everything that starts before `horizon` must have begun.
  Time next(Time horizon);

  // Runs the events of the instant `now`, which is that given by next(). Appends the owners whose flows end.
  void run(Time now, std::vector<Owner>& ended);

 private:
  // What is known in advance of a flow.
  struct Timer {
    enum class What : uint8_t { enters, joins, ends } what;  // enters: comes to its devices, while its latency lasts
    Time time;
    FlowId flow;
    bool operator>(const Timer& other) const { return time > other.time; }
  };

  FlowId add(Flow flow);
  void set(Timer::What what, Time time, FlowId flow);
  Timer take_timer();
  void fire(const Timer& timer, std::vector<Owner>& ended);
  void change_capacities();
  void end(FlowId id, std::vector<Owner>& ended);
  void leave(FlowId id);
  void settle();
  void join(FlowId id);
  void touch(LinkId link);
  double first_change();
  double full_at(const Link& link) const;
  void find_component();
  void widen_component();
  void visit_flows(const Link& link);
  void open(FlowId id, double rate);
  double room_left(const Link& link) const;
  void change_speed(FlowId id);

  std::shared_ptr<const Fabric> fabric_;
  size_t changes_made_ = 0;  // of the fabric's
  Table<LinkId, Link> links_;
  Slab<FlowId, Flow> flows_;
  Table<FlowId, Demand> demands_;
  Table<FlowId, Grant> grants_;
  Overlap overlap_;
  EndHeap ends_;
  std::vector<Timer> timers_;      // a heap
  Time now_ = 0;                   // the last instant that was run
  std::vector<FlowId> newcomers_;  // joined at now_, have no rate yet
  std::vector<LinkId> touched_;    // links whose capacity or flows changed at now_
  uint64_t serials_ = 0;
  Component component_;          // scratch
  std::vector<double> full_at_;  // scratch: of the touched links
  std::vector<FlowId> changed_;  // scratch
};

}  // namespace phantora::netsim
