// The simulation itself: lanes execute their programs, streams and the network follow, in one total order of time.
//
// docs/exactness.md says why the order in which records arrive leaves no trace. In short: within a rank, records are
// executed by (issue time, lane); what one rank does reaches another not before kLookahead later; the frontier is the
// time up to which everything that reaches across ranks is known, and it never passes the horizon, before which no lane
// can act any more. What depends on a rank's own past alone (a chain of kernels) is worked out at once, ahead of the
// frontier.
//
// A World can be copied: the copy shares the records and definitions and nothing else.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "communicator.h"
#include "definitions.h"
#include "host_group.h"
#include "ids.h"
#include "network.h"
#include "rank.h"
#include "sim_time.h"
#include "timeline.h"

namespace phantora::netsim {

struct State {
  Table<RankId, Rank> ranks;
  Table<RankId, Time> bounds;   // before it the rank does nothing by itself
  Table<RankId, Time> wakes;    // when the frontier gets there the rank can go on
  std::vector<RankId> touched;  // ranks to be run
  Table<CommId, Communicator> comms;
  Slab<OperationId, Operation> operations;
  Slab<TransferId, Transfer> transfers;
  Slab<LaunchId, Launch> launches;
  Table<HostGroupId, HostGroup> host_groups;
  FlowNetwork network;
  Time frontier = 0;           // everything that other ranks feel up to here is known; what is not, is later
  uint64_t disagreements = 0;  // collectives and messages whose members have all come, and do not ask for the same
};

class World {
 public:
  World(const Definitions& definitions, size_t ranks, std::shared_ptr<const Fabric> fabric, size_t launch_queue_depth,
        Timeline& timeline);

  // What was defined, and what the ranks will do (checked by Inlet).
  void define_stream(RankId rank, StreamId stream);
  void define_comm(CommId comm);
  void define_host_group(HostGroupId group);
  LaneId add_lane(RankId rank, uint16_t number);
  RecordingId add_recording(RankId rank, uint64_t name);
  void refer(RankId rank, RecordingId recording) { ++state_.ranks[rank].recordings[recording].references; }
  void append(RankId rank, LaneId lane, std::shared_ptr<const Batch> steps);
  void close(RankId rank);

  // Goes on to the next instant at which something happens. False when nothing more is certain.
  bool step();
  std::vector<Answer> take_answers() { return std::exchange(answers_, {}); }

  // From here on, lanes without records never issue anything, and the timeline is no longer written.
  void imagine_silence();

  const State& state() const { return state_; }
  const Definitions& definitions() const { return *definitions_; }

 private:
  struct Turn;
  struct Choice;
  struct StreamRef {
    RankId rank;
    StreamId stream;
  };

  DeviceId define_device(RankId rank, int32_t number);

  // Horizon and lanes (world.cc).
  void touch(Rank& rank);
  void run_touched();
  void run(Rank& rank);
  bool run_lane(Rank& rank);
  Choice choose(const Rank& rank) const;
  bool is_early(const Lane& lane) const;
  void advance_frontier(Time frontier);
  void answer_queries(Rank& rank);

  // Records (execution.cc).
  bool execute(Rank& rank, LaneId lane);
  bool has_room(Rank& rank, LaneId lane, StreamId stream, Time now);
  void record_event(Rank& rank, const Step& step, Time now);
  void wait_for_event(Rank& rank, const Step& step, Time now);
  void ask(Rank& rank, LaneId lane, const Step& step, Time now);
  void ask_stream(Rank& rank, WaitId wait, Stream& stream);
  void ask_recording(Rank& rank, WaitId wait, RecordingId recording);
  void arrive(Rank& rank, LaneId lane, const Step& step, Time now);
  void begin_lane(Rank& rank, LaneId lane, Time now);
  void end_lane(Rank& rank, LaneId lane);
  bool notify(Rank& rank, WaitId wait, Time moment);
  void complete(Rank& rank, WaitId wait);
  void answer(const Rank& rank, uint64_t request, int64_t value, Time at);

  void occupy(Rank& rank, StreamId stream, Item& kernel) const;
  static void communicate(Rank& rank, const Stream& stream);
  static Device& device_of(Rank& rank, const Stream& stream);

  // Streams (streams.cc).
  void issue(Rank& rank, StreamId stream, const Item& item);
  bool reach(Rank& rank, StreamId stream, const Item& item);
  void end_launch(Rank& rank, StreamId stream, const Item& item, Time start, Time end);
  void end_head(RankId rank, StreamId stream, Time end);
  void go_on(Rank& rank, StreamId stream);
  void go_on_ready();
  void complete_recording(Rank& rank, RecordingId recording, Time time);
  void release(Rank& rank, RecordingId recording);

  // Between ranks (matching.cc).
  Item join_collective(const Rank& rank, StreamId stream, const Call& call, Item item);
  Item join_transfers(const Rank& rank, StreamId stream, const Call& call, Item item);
  TransferId find_transfer(const Call& call, uint32_t source, uint32_t destination, bool sends);
  bool reach_collective(const Item& item, Time ready);
  bool reach_transfers(Rank& rank, StreamId stream, const Item& item, Time ready);
  void reach_send(TransferId transfer, Time ready);
  void reach_receive(TransferId transfer, Time ready);
  void begin_transfer(TransferId transfer);
  void abort(Rank& rank, const Step& step, Time now);
  std::optional<Time> abort_of(const Rank& rank, const Item& item) const;
  void give_up(const Item& item, Time now);
  void give_up(Operation& operation, uint32_t member, Time now);
  void give_up(Transfer& transfer, LaunchId launch, Time now);
  std::vector<DeviceId> carriers(const Operation& operation) const;
  std::vector<DeviceId> carriers(const Transfer& transfer) const;
  void end_flow(Owner owner, Time end);
  void end_operation(OperationId operation, Time end);
  void end_transfer(TransferId transfer, Time end);
  void finish_part(LaunchId launch, Time end);
  void finish(LaunchId launch, Time end);

  State state_;
  const Definitions* definitions_;
  size_t launch_queue_depth_;
  Timeline* timeline_;  // null in an imagined world
  std::vector<Answer> answers_;
  std::vector<StreamRef> ready_;  // streams whose head has got what it waited for
  std::vector<Owner> ended_;      // scratch
};

}  // namespace phantora::netsim
