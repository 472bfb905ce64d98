// Collective operations: what each moves, and how its values travel.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "nccl/communicator.h"
#include "nccl/types.h"
#include "phantora/recorder.h"

namespace phantora::nccl {

enum class CollectiveKind { all_reduce, all_gather, reduce_scatter, broadcast, reduce, gather, scatter, all_to_all };

struct Collective {
  CollectiveKind kind;
  size_t count;  // as the call gives it
  DataType type;
  RedOp redop = RedOp::sum;  // where the kind reduces
  int root = -1;             // where the kind has one
  const void* send = nullptr;
  void* receive = nullptr;
};

// Throws Error for what NCCL refuses: types, operations, roots, and pointers that are not to memory of the device.
void check(const Communicator& communicator, const Collective& collective);

// One launch of all of them: tells the simulator, and hands the values to the stream. The caller holds the
// communicator's mutex.
void issue(const CommunicatorPtr& communicator, const std::vector<Collective>& collectives, StreamId stream);

// The smallest operation, without values: members of a communicator meet.
void issue_barrier(Communicator& communicator, StreamId stream);

}  // namespace phantora::nccl
