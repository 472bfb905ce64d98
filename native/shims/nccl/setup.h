// How communicators come to be. All members meet (a HOST_SYNC, so that their clocks agree), then each joins the
// exchange of messages and defines its communicator to the simulator.
//
// Set-ups that belong together (one call, or a group of calls) form a batch. A lone blocking one waits on the caller's
// own lane. Otherwise every set-up of the batch waits on a thread of its own, as in NCCL, and the caller's lane meets
// those threads when the batch is settled: at the end of a blocking group, or when a non-blocking communicator is asked
// for its state or first used.
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
  virtual bool blocking() const = 0;
  virtual void announce() {}   // sends what the others need to know; waits for nothing
  virtual void agree() = 0;    // all have come: joins the exchange
  virtual void publish() = 0;  // every member of this process has joined: takes memory, tells the simulator
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
