// Links and the flows on them: the system that fairness.h solves and network.h moves through time. Kernels whose speed
// depends on the communication beside them are flows too, on no link.
#pragma once

#include <cstdint>
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

struct Flow {
  static constexpr uint32_t kNotInHeap = UINT32_MAX;

  Owner owner{};
  Precedence precedence{};
  const Activity* activity = nullptr;  // null: a kernel
  std::vector<DeviceId> devices{};     // those on which it feels, and is felt by, what else they do
  uint64_t serial = 0;                 // flows in the order in which they joined; equal times by precedence
  double remaining = 0;                // bytes (of a kernel: ns of work), at `since`
  double rate = 0;                     // bytes (ns) per ns, since `since`; 0 until it joins
  double slowdown = 1;                 // it moves at rate / slowdown
  Time since = 0;
  Time end = kNever;  // at this speed
  uint32_t heap_place = kNotInHeap;
  double next_rate = 0;  // solver's result
  double next_slowdown = 1;
  bool open = false;     // solver: has no rate yet
  bool visited = false;  // belongs to the component, or the change, being worked out

  bool computes() const { return owner.kind == Owner::Kind::kernel; }
};

struct Share {
  FlowId flow;
  double weight;
};

struct Link {
  double capacity = 0;          // bytes per ns
  std::vector<Share> shares{};  // in the order of the flows' serials
  double room = 0;              // solver: capacity not yet given away
  double weight = 0;            // solver: sum of the weights of open flows
  uint32_t open = 0;            // solver: how many those are
  bool visited = false;         // belongs to the component being solved
};

// Links and flows that are connected to one another.
struct Component {
  std::vector<LinkId> links;
  std::vector<FlowId> flows;
};

}  // namespace phantora::netsim
