// Which calls of different ranks belong together, and when what they ask for begins and ends.

#include <algorithm>
#include <cassert>

#include "world.h"

namespace phantora::netsim {

Item World::join_collective(const Rank& rank, StreamId stream, const Call& call, Item item) {
  Communicator& comm = state_.comms[call.comm];
  const uint64_t sequence = comm.calls[call.member]++;
  while (comm.first + comm.open.size() <= sequence) {
    Operation operation;
    operation.comm = call.comm;
    operation.sequence = comm.first + comm.open.size();
    operation.members.resize(comm.size);
    comm.open.push(state_.operations.add(std::move(operation)));
  }
  const OperationId id = comm.open[sequence - comm.first];
  Operation& operation = state_.operations[id];
  operation.members[call.member] = {.come = true,
                                    .rank = rank.id,
                                    .stream = stream,
                                    .definition = item.definition,
                                    .key = call.key,
                                    .precedence = {rank.id, item.sequence, 0},
                                    .activity = call.activity.get()};
  if (operation.come++ == 0) operation.key = call.key;
  if (operation.key != call.key) operation.mismatched = true;
  if (operation.mismatched && operation.come == comm.size) ++state_.disagreements;
  item.subject = static_cast<uint32_t>(id);
  item.member = call.member;
  return item;
}

// The member's stream has come to it. It waits for the others even when it is the last: the end is in the future.
bool World::reach_collective(const Item& item, Time ready) {
  Operation& operation = state_.operations[OperationId{item.subject}];
  operation.members[item.member].ready = true;
  ++operation.ready;
  operation.start = std::max(operation.start, ready);
  if (operation.ready == operation.members.size() && !operation.mismatched) {
    const Operation::Member& leader = operation.members.front();
    operation.flow = state_.network.begin({.kind = Owner::Kind::operation, .id = item.subject}, leader.precedence,
                                          *leader.activity, operation.start, carriers(operation));
  }
  return false;
}

void World::end_operation(OperationId id, Time end) {
  const Operation operation = std::move(state_.operations[id]);
  state_.operations.remove(id);
  Communicator& comm = state_.comms[operation.comm];
  comm.open[operation.sequence - comm.first] = kEndedOperation;
  while (!comm.open.empty() && comm.open.front() == kEndedOperation) {
    comm.open.pop();
    ++comm.first;
  }
  for (const Operation::Member& member : operation.members) end_head(member.rank, member.stream, end);
}

Item World::join_transfers(const Rank& rank, StreamId stream, const Call& call, Item item) {
  const LaunchId id = state_.launches.add({.rank = rank.id, .stream = stream, .transfers = {}});
  std::vector<TransferId> transfers;
  uint32_t part = 0;
  for (const Call::Send& send : call.sends) {
    const TransferId transfer_id = find_transfer(call, call.member, send.peer, true);
    Transfer& transfer = state_.transfers[transfer_id];
    transfer.sender = {.come = true, .rank = rank.id, .launch = id, .definition = item.definition, .key = send.key};
    transfer.precedence = {rank.id, item.sequence, part++};
    transfer.activity = send.activity.get();
    transfer.eager = call.eager;
    if (transfer.mismatched()) ++state_.disagreements;
    transfers.push_back(transfer_id);
  }
  for (const Call::Receive& receive : call.receives) {
    const TransferId transfer_id = find_transfer(call, receive.peer, call.member, false);
    Transfer& transfer = state_.transfers[transfer_id];
    transfer.receiver = {
        .come = true, .rank = rank.id, .launch = id, .definition = item.definition, .key = receive.key};
    if (transfer.mismatched()) ++state_.disagreements;
    transfers.push_back(transfer_id);
  }
  state_.launches[id].outstanding = static_cast<uint32_t>(transfers.size());
  state_.launches[id].transfers = std::move(transfers);
  item.subject = static_cast<uint32_t>(id);
  item.member = call.member;
  item.point_to_point = true;
  return item;
}

// The transfer that the next send (or receive) of this direction belongs to.
TransferId World::find_transfer(const Call& call, uint32_t source, uint32_t destination, bool sends) {
  Communicator& comm = state_.comms[call.comm];
  Channel& channel = comm.channels[uint64_t{source} << 32 | destination];
  const uint64_t sequence = sends ? channel.sends++ : channel.receives++;
  if (channel.first + channel.open.size() <= sequence) {
    Transfer transfer;
    transfer.comm = call.comm;
    transfer.source = source;
    transfer.destination = destination;
    transfer.sequence = sequence;
    channel.open.push(state_.transfers.add(std::move(transfer)));
  }
  const TransferId id = channel.open[sequence - channel.first];
  while (channel.first < std::min(channel.sends, channel.receives)) {  // both sides have come
    channel.open.pop();
    ++channel.first;
  }
  return id;
}

bool World::reach_transfers(Rank& rank, StreamId stream, const Item& item, Time ready) {
  const LaunchId launch_id{item.subject};
  state_.launches[launch_id].latest = ready;
  const std::vector<TransferId> transfers = state_.launches[launch_id].transfers;  // those that end leave the list
  for (const TransferId id : transfers) {
    Transfer& transfer = state_.transfers[id];
    const bool sends = transfer.sender.come && transfer.sender.launch == launch_id && !transfer.sender.ready;
    if (sends) {
      reach_send(id, ready);
    } else {
      reach_receive(id, ready);
    }
  }
  const Launch& launch = state_.launches[launch_id];
  if (launch.outstanding > 0) return false;
  const Time end = launch.latest;
  state_.launches.remove(launch_id);
  end_launch(rank, stream, item, ready, end);
  return true;
}

void World::reach_send(TransferId id, Time ready) {
  Transfer& transfer = state_.transfers[id];
  transfer.sender.ready = true;
  transfer.sender.at = ready;
  if (transfer.eager) {
    begin_transfer(id);
    finish_part(std::exchange(transfer.sender.launch, kEndedLaunch), ready);
  } else if (transfer.receiver.ready && !transfer.mismatched()) {
    begin_transfer(id);
  }
}

void World::reach_receive(TransferId id, Time ready) {
  Transfer& transfer = state_.transfers[id];
  transfer.receiver.ready = true;
  transfer.receiver.at = ready;
  if (transfer.mismatched()) return;
  if (transfer.ended) {
    finish_part(transfer.receiver.launch, transfer.end);
    state_.transfers.remove(id);
  } else if (transfer.sender.ready && !transfer.eager) {
    begin_transfer(id);
  }
}

void World::begin_transfer(TransferId id) {
  Transfer& transfer = state_.transfers[id];
  const Time start = transfer.eager ? transfer.sender.at : std::max(transfer.sender.at, transfer.receiver.at);
  transfer.flow = state_.network.begin({.kind = Owner::Kind::transfer, .id = static_cast<uint32_t>(id)},
                                       transfer.precedence, *transfer.activity, start, carriers(transfer));
}

void World::end_transfer(TransferId id, Time end) {
  const Transfer transfer = state_.transfers[id];
  if (transfer.eager && (!transfer.receiver.ready || transfer.mismatched())) {
    state_.transfers[id].ended = true;
    state_.transfers[id].end = end;
    return;
  }
  state_.transfers.remove(id);
  if (!transfer.eager) finish(transfer.sender.launch, end);
  finish(transfer.receiver.launch, end);
}

// A transfer of the launch has ended.
void World::finish_part(LaunchId id, Time end) {
  Launch& launch = state_.launches[id];
  launch.latest = std::max(launch.latest, end);
  --launch.outstanding;
}

// Likewise; it is at the head of its stream's queue.
void World::finish(LaunchId id, Time end) {
  finish_part(id, end);
  if (state_.launches[id].outstanding > 0) return;
  const Launch ended = std::move(state_.launches[id]);
  state_.launches.remove(id);
  end_head(ended.rank, ended.stream, ended.latest);
}

// Ends the member's part of all that it has called on the communicator and that has not ended. Nothing that ends at
// `now` or before is left to come (is_early).
void World::abort(Rank& rank, const Step& step, Time now) {
  const Abort& abort = *definitions_->abort(rank.id, step.a);
  Time& aborted = state_.comms[abort.comm].aborts[abort.member];
  aborted = std::min(aborted, now);
  for (size_t i = 0; i < rank.streams.size(); ++i) {
    const Stream& stream = rank.streams[StreamId(i)];
    if (stream.queue.empty() || !abort_of(rank, stream.queue.front())) continue;
    give_up(stream.queue.front(), now);
    end_head(rank.id, StreamId(i), std::max(stream.head_start, after(now, kLookahead)));
  }
}

// When the member whose call the item is aborted the communicator. What stores in memory of others and looks for what
// they store (an eager launch) knows of no aborts.
std::optional<Time> World::abort_of(const Rank& rank, const Item& item) const {
  if (item.kind != Kind::collective) return std::nullopt;
  const Call& call = *definitions_->call(rank.id, item.definition);
  const Communicator& comm = state_.comms[call.comm];
  if (call.eager || !comm.has_aborted(call.member)) return std::nullopt;
  return comm.aborts[call.member];
}

// The member takes no part in it any more; the others wait for it without end.
void World::give_up(const Item& item, Time now) {
  if (!item.point_to_point) return give_up(state_.operations[OperationId{item.subject}], item.member, now);
  const LaunchId id{item.subject};
  for (const TransferId transfer : state_.launches[id].transfers) give_up(state_.transfers[transfer], id, now);
  state_.launches.remove(id);
}

void World::give_up(Operation& operation, uint32_t member, Time now) {
  if (std::exchange(operation.members[member].ready, false)) --operation.ready;
  if (operation.flow) state_.network.cancel(*std::exchange(operation.flow, std::nullopt), now);
}

// It may not be the launch's any more: one that has ended leaves its place to another.
void World::give_up(Transfer& transfer, LaunchId launch, Time now) {
  bool is_part = false;
  for (Transfer::Side* side : {&transfer.sender, &transfer.receiver}) {
    if (!side->come || side->launch != launch) continue;
    side->ready = false;
    side->launch = kEndedLaunch;
    is_part = true;
  }
  if (is_part && transfer.flow && !transfer.eager) {
    state_.network.cancel(*std::exchange(transfer.flow, std::nullopt), now);
  }
}

// The devices on which it meets kernels.
std::vector<DeviceId> World::carriers(const Operation& operation) const {
  std::vector<DeviceId> devices;
  if (operation.members.size() == 1) return devices;
  for (const Operation::Member& member : operation.members) {
    const Stream& stream = state_.ranks[member.rank].streams[member.stream];
    if (stream.overlap != Stream::kAlone) devices.push_back(stream.overlap);
  }
  return devices;
}

std::vector<DeviceId> World::carriers(const Transfer& transfer) const {
  std::vector<DeviceId> devices;
  if (transfer.source == transfer.destination || transfer.eager) return devices;
  for (const Transfer::Side& side : {transfer.sender, transfer.receiver}) {
    const Launch& launch = state_.launches[side.launch];
    const Stream& stream = state_.ranks[launch.rank].streams[launch.stream];
    if (stream.overlap != Stream::kAlone) devices.push_back(stream.overlap);
  }
  return devices;
}

void World::end_flow(Owner owner, Time end) {
  switch (owner.kind) {
    case Owner::Kind::operation:
      end_operation(OperationId{owner.id}, end);
      break;
    case Owner::Kind::transfer:
      end_transfer(TransferId{owner.id}, end);
      break;
    case Owner::Kind::kernel:
      end_head(RankId{owner.id}, owner.stream, end);
      break;
    case Owner::Kind::background:
      break;
  }
  go_on_ready();
}

}  // namespace phantora::netsim
