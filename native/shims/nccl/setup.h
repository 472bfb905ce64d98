// How communicators come to be: their members in this process join the exchange of messages, all members meet (so that
// their clocks agree), and the simulator gets the communicator's definition.
//
// Set-ups that belong together (one call, or a group of calls) form a batch. A lone blocking one meets the other
// members by a HOST_SYNC of the caller's lane. Otherwise nothing may block between the members' calls: every set-up
// issues a barrier on a stream of its own, and the caller's lane waits for these streams when the batch is settled: at
// the end of a blocking group, or when a non-blocking communicator is asked for its state or first used. All members of
// a communicator must come in the same of these two ways.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "nccl/communicator.h"
#include "nccl/types.h"

namespace phantora::nccl {

// Who must come before a set-up can go on.
struct Meeting {
  std::string uid;
  int size = 0;
  int index = 0;
};

class Setup {
 public:
  virtual ~Setup() = default;
  virtual const Meeting& meeting() const = 0;
  virtual const CommunicatorPtr& place() const = 0;  // on which a barrier is issued, defined after announce()
  virtual bool blocking() const = 0;

  // In this order, each for all set-ups of a batch before the next one:
  virtual void join() = 0;      // the exchange, if it is known by now as which member
  virtual void announce() = 0;  // tells others what they need to know; waits for nothing
  virtual void agree() = 0;     // all members have come
  virtual void publish() = 0;   // all members in this process have joined
};

// This process's member `index` of the communicator named by `uid`.
std::shared_ptr<Setup> init_rank(CommunicatorPtr communicator, std::string uid, int size, int index);

// The part of the parent's members with `color`, ordered by key, then by their index. `child` is null without a color.
// `shares_buffers`: the child uses the parent's device buffers.
std::shared_ptr<Setup> split(CommunicatorPtr parent, int color, int key, CommunicatorPtr child, bool shares_buffers);

// Runs set-ups that belong together. `in_progress` if some are non-blocking.
Result run(std::vector<std::shared_ptr<Setup>> setups, const std::vector<CommunicatorPtr>& communicators);

// Waits for a communicator's set-up, if it is under way.
void settle(Communicator& communicator);

std::string fresh_uid();  // of at most 128 bytes, unique in the job

}  // namespace phantora::nccl
