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
    state_.network.begin({.kind = Owner::Kind::operation, .id = item.subject}, leader.precedence, *leader.activity,
                         operation.start, carriers(operation));
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
  Launch& launch = state_.launches[launch_id];
  if (launch.transfers.empty()) {
    state_.launches.remove(launch_id);
    end_launch(rank, stream, item, ready, ready);
    return true;
  }
  for (const TransferId id : launch.transfers) {
    Transfer& transfer = state_.transfers[id];
    const bool sends = transfer.sender.come && transfer.sender.launch == launch_id && !transfer.sender.ready;
    (sends ? transfer.sender : transfer.receiver).ready = true;
    transfer.start = std::max(transfer.start, ready);
    if (!transfer.sender.ready || !transfer.receiver.ready || transfer.mismatched()) continue;
    state_.network.begin({.kind = Owner::Kind::transfer, .id = static_cast<uint32_t>(id)}, transfer.precedence,
                         *transfer.activity, transfer.start, carriers(transfer));
  }
  return false;
}

void World::end_transfer(TransferId id, Time end) {
  const Transfer transfer = state_.transfers[id];
  state_.transfers.remove(id);
  for (const Transfer::Side& side : {transfer.sender, transfer.receiver}) {
    Launch& launch = state_.launches[side.launch];
    launch.latest = std::max(launch.latest, end);
    if (--launch.outstanding > 0) continue;
    const Launch ended = std::move(launch);
    state_.launches.remove(side.launch);
    end_head(ended.rank, ended.stream, ended.latest);
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
  if (transfer.source == transfer.destination) return devices;
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
