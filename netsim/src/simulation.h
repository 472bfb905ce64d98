// What the outside sees: definitions and records in, answers and what has happened out.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "definitions.h"
#include "diagnosis.h"
#include "inlet.h"
#include "timeline.h"
#include "world.h"

namespace phantora::netsim {

struct Reply {
  RankId rank;
  uint64_t request;
  int64_t value;
  bool speculated;
};

struct Correction {
  RankId rank;
  uint64_t request;
  int64_t value;
};

class Simulation {
 public:
  Simulation(int64_t ranks, Fabric fabric, int64_t launch_queue_depth);
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  // All throw std::invalid_argument, with nothing changed.
  void define_device(int64_t rank, int64_t device, Slowdown slowdown);
  void define_stream(int64_t rank, int64_t stream, int64_t device);
  void define_kernel(int64_t rank, int64_t signature, KernelCost cost);
  void define_comm(int64_t comm, int64_t size);
  void define_call(int64_t rank, int64_t definition, int64_t comm, Call call);
  void define_abort(int64_t rank, int64_t definition, int64_t comm, int64_t member);
  void define_host_group(int64_t rank, int64_t definition, int64_t group, int64_t size, int64_t cost_ns);
  void feed(int64_t rank, std::string_view batch);
  void close_rank(int64_t rank);

  std::vector<Reply> advance();
  std::vector<Reply> speculate();
  std::vector<Correction> take_corrections() { return std::exchange(corrections_, {}); }

  std::vector<Waiting> waiting() const { return Diagnosis(world_).waiting(); }
  std::vector<Obstacle> held_up(int64_t rank) const { return Diagnosis(world_).held_up(checked(rank)); }
  bool disagrees() const { return world_.state().disagreements > 0; }
  std::vector<Disagreement> disagreements() const { return Diagnosis(world_).disagreements(); }
  std::vector<Node> take_nodes() { return timeline_.take_nodes(world_.state().frontier); }
  std::vector<Mark> take_marks() { return timeline_.take_marks(world_.state().frontier); }
  Time clock(int64_t rank) const;
  Time committed() const;
  uint64_t corrected_replies() const { return corrected_replies_; }

 private:
  using Request = std::pair<RankId, uint64_t>;

  RankId checked(int64_t rank) const;

  Definitions definitions_;
  Timeline timeline_;
  World world_;
  std::optional<World> guess_;       // scratch, for speculation: kept because its memory is worth more than its state
  std::vector<Inlet> inlets_;        // by rank
  std::map<Request, int64_t> told_;  // speculated answers that have not been confirmed
  std::vector<Correction> corrections_;
  uint64_t corrected_replies_ = 0;
};

}  // namespace phantora::netsim
