// Sends and receives. Those of one group, on one communicator and stream, are one launch.
#pragma once
#include <cstddef>
#include <vector>

#include "nccl/communicator.h"
#include "phantora/recorder.h"

namespace phantora::nccl {

struct Transfer {
  bool sends;
  int peer;
  void* buffer;  // only read when it sends
  size_t bytes;
};

void check(const Communicator& communicator, const Transfer& transfer);

// Tells the simulator, and hands the values to the stream. The caller holds the communicator's mutex.
void issue(const CommunicatorPtr& communicator, const std::vector<Transfer>& transfers, StreamId stream);

}  // namespace phantora::nccl
