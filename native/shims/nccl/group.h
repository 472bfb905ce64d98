// ncclGroupStart and ncclGroupEnd. A call outside a group is a group of its own.
//
// Order in which a group is issued, for each communicator in the order of its first call: all its collectives as one
// launch for each stream, then all its sends and receives likewise. (NCCL would put both into one kernel.) Set-ups
// cannot stand with operations in a group, as in NCCL.
#pragma once
#include <memory>
#include <vector>

#include "nccl/collective.h"
#include "nccl/communicator.h"
#include "nccl/error.h"
#include "nccl/setup.h"
#include "nccl/transfer.h"
#include "nccl/types.h"
#include "phantora/streams.h"

namespace phantora::nccl {

class Group {
 public:
  static Group& current();  // of the calling thread

  void start() { ++depth_; }
  Result end();  // issues everything when it is the outermost

  void add(const CommunicatorPtr& communicator, const Collective& collective, streams::Handle stream);
  void add(const CommunicatorPtr& communicator, const Transfer& transfer, streams::Handle stream);
  // `result`: where the handle goes, null once nothing came of it.
  void add(std::shared_ptr<Setup> setup, const CommunicatorPtr& communicator, Handle* result);

  // An error inside a group voids all of it; its end returns it.
  void fail(Result result);

 private:
  // What is launched together, in call order.
  template <class Operation>
  struct Launch {
    streams::Handle stream;
    std::vector<Operation> operations;
  };
  struct Operations {
    CommunicatorPtr communicator;
    std::vector<Launch<Collective>> collectives;
    std::vector<Launch<Transfer>> transfers;
  };
  struct PendingSetup {
    std::shared_ptr<Setup> setup;
    CommunicatorPtr communicator;
    Handle* result;
  };

  Operations& operations_of(const CommunicatorPtr& communicator);
  template <class Operation>
  static void add_to(std::vector<Launch<Operation>>& launches, const Operation& operation, streams::Handle stream);
  static void issue(const Operations& operations);
  static Result run(std::vector<PendingSetup> setups);

  int depth_ = 0;
  Result failure_ = Result::success;
  std::vector<Operations> operations_;
  std::vector<PendingSetup> setups_;
};

// Makes a call a group of its own, or part of the one that is open; what it throws voids the group.
template <class Add>
Result in_group(const Add& add) {
  Group& group = Group::current();
  group.start();
  try {
    add(group);
  } catch (const Error& error) {
    group.fail(error.result);
    group.end();
    throw;
  }
  return group.end();
}

}  // namespace phantora::nccl
