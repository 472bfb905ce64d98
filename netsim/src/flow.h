// Links and the flows on them: the system that fairness.h solves and network.h moves through time. Kernels whose speed
// depends on the communication beside them are flows too, on no link.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "activity.h"
#include "ids.h"
#include "sim_time.h"

namespace phantora::netsim {

// Whose it is.
struct Owner {
  enum class Kind : uint8_t { operation, transfer, kernel, background } kind;
  uint32_t id = 0;    // of the operation or transfer; of a kernel, its rank
  StreamId stream{};  // of a kernel
};

// A total order of activities that does not depend on when the core heard of them: the rank that leads it, that rank's
// count of executed records when it was issued, and its place within that record.
struct Precedence {
  RankId rank;
  uint64_t sequence;
  uint32_t part;
  auto operator<=>(const Precedence&) const = default;
};

struct alignas(64) Flow {
  // How it moves, in one cache line.
  double remaining = 0;  // bytes (of a kernel: ns of work), at `since`
  double speed = 0;      // bytes (ns) per ns, since `since`: its rate / slowdown; 0 until it joins
  Time since = 0;
  double slowdown = 1;   // from now on
  bool visited = false;  // its slowdown is being worked out
  uint16_t share = 0;    // of its device that a kernel fills, in 1/kWholeDevice

  Owner owner{};
  const Activity* activity = nullptr;  // null: a kernel
  Precedence precedence{};
  std::vector<DeviceId> devices{};  // those on which it feels, and is felt by, what else they do

  bool computes() const { return owner.kind == Owner::Kind::kernel; }
};

inline constexpr double kUnlimited = std::numeric_limits<double>::infinity();

// What a flow asks the solver for, and what it is granted: apart from each other and from the rest of the flow, because
// solving looks at the grants of a component's flows again and again, in no order that a cache would like. A demand is
// a cache line: a few links are held in it, more are the activity's.
struct alignas(64) Demand {
  static constexpr size_t kFew = 4;
  static constexpr LinkId kNone{UINT32_MAX};

  double weight[kFew] = {};
  LinkId link[kFew] = {kNone, kNone, kNone, kNone};
  const Activity* activity = nullptr;
  uint64_t serial = 0;  // flows in the order in which they joined; equal times by precedence

  Demand() = default;
  explicit Demand(const Activity& of) : activity(&of) {
    if (of.links.size() > kFew) return;
    for (size_t i = 0; i < of.links.size(); ++i) {
      link[i] = of.links[i].link;
      weight[i] = of.links[i].weight;
    }
  }

  // Calls visit(link, weight) for each link.
  template <class Visit>
  void each_link(Visit visit) const {
    if (link[0] != kNone) {
      for (size_t i = 0; i < kFew && link[i] != kNone; ++i) visit(link[i], weight[i]);
    } else if (activity) {
      for (const Use& use : activity->links) visit(use.link, use.weight);
    }
  }

  double max_rate() const { return activity->max_rate; }

  // Lies anywhere in memory, and is asked for kAhead flows before it is needed.
  void prefetch() const { __builtin_prefetch(this); }
  static constexpr size_t kAhead = 3;
};

struct Grant {
  static constexpr double kOpen = -1;

  double rate = 0;         // kOpen while the solver works, kUnlimited for a newcomer, 0 before
  uint32_t component = 0;  // number of the last one that the flow belonged to
  bool capped = false;     // has a finite largest rate

  bool open() const { return rate < 0; }
};

struct Share {
  FlowId flow;
  double weight;
};

struct alignas(64) Link {
  static constexpr uint32_t kTouched = UINT32_MAX;

  double room = 0;              // capacity not given away to flows that are not open
  double weight = 0;            // solver: sum of the weights of open flows
  uint32_t open = 0;            // solver: how many those are
  uint32_t component = 0;       // number of the last one that it belonged to; kTouched if it has changed since
  double capacity = 0;          // bytes per ns
  double level = kUnlimited;    // rate at which it is full, and at which it closed those of its flows that were open
  std::vector<Share> shares{};  // in the order of the flows' serials
};

// Links and flows that are connected to one another, and whose rates have to be worked out.
struct Component {
  uint32_t number = 0;  // tells it from those before
  double level = 0;     // rates below it are as they were
  std::vector<LinkId> links;
  std::vector<FlowId> flows;
};

}  // namespace phantora::netsim
