#include "nccl/group.h"

#include <algorithm>
#include <utility>

#include "nccl/error.h"
#include "phantora/device.h"
#include "phantora/watchdogs.h"

namespace phantora::nccl {
namespace {

// A null stream is the default stream of the communicator's device, whatever the current one is.
class OnDevice {
 public:
  explicit OnDevice(int device) : before_(device::current()) { device::set_current(device); }
  ~OnDevice() { device::set_current(before_); }

 private:
  int before_;
};

void check_stream(const Communicator& communicator, streams::Handle stream) {
  const OnDevice device(communicator.device);
  const auto info = streams::find(stream);
  if (!info) throw Error(Result::unhandled_cuda_error, "Cuda failure 'invalid resource handle': no such stream");
  if (info->device != communicator.device) reject("the stream is of another device than the communicator");
}

}  // namespace

Group& Group::current() {
  thread_local Group group;
  return group;
}

void Group::add(const CommunicatorPtr& communicator, const Collective& collective, streams::Handle stream) {
  communicator->check_usable();
  check(*communicator, collective);
  check_stream(*communicator, stream);
  if (collective.count == 0) return;  // as NCCL does
  add_to(operations_of(communicator).collectives, collective, stream);
}

void Group::add(const CommunicatorPtr& communicator, const Transfer& transfer, streams::Handle stream) {
  communicator->check_usable();
  check(*communicator, transfer);
  check_stream(*communicator, stream);
  add_to(operations_of(communicator).transfers, transfer, stream);
}

template <class Operation>
void Group::add_to(std::vector<Launch<Operation>>& launches, const Operation& operation, streams::Handle stream) {
  const auto same = std::find_if(launches.begin(), launches.end(), [&](const auto& l) { return l.stream == stream; });
  if (same == launches.end()) {
    launches.push_back({stream, {operation}});
  } else {
    same->operations.push_back(operation);
  }
}

void Group::add(std::shared_ptr<Setup> setup, const CommunicatorPtr& communicator, Handle* result) {
  setups_.push_back({std::move(setup), communicator, result});
}

void Group::fail(Result result) {
  if (failure_ == Result::success) failure_ = result;
}

Result Group::end() {
  if (depth_ == 0) throw Error(Result::invalid_usage, "ncclGroupEnd without ncclGroupStart");
  if (--depth_ > 0) return Result::success;
  const std::vector<Operations> operations = std::exchange(operations_, {});
  std::vector<PendingSetup> setups = std::exchange(setups_, {});
  const Result failure = std::exchange(failure_, Result::success);
  if (failure != Result::success) return failure;
  if (!setups.empty() && !operations.empty()) {
    throw Error(Result::invalid_usage, "a group holds both operations and set-ups of communicators");
  }
  if (!operations.empty()) watchdogs::look();
  for (const Operations& each : operations) each.communicator->check_usable();  // it may have ended since
  for (const Operations& each : operations) issue(each);
  return setups.empty() ? Result::success : run(std::move(setups));
}

Group::Operations& Group::operations_of(const CommunicatorPtr& communicator) {
  const auto found = std::find_if(operations_.begin(), operations_.end(),
                                  [&](const Operations& o) { return o.communicator == communicator; });
  if (found != operations_.end()) return *found;
  return operations_.emplace_back(Operations{communicator, {}, {}});
}

void Group::issue(const Operations& operations) {
  const OnDevice device(operations.communicator->device);
  const std::lock_guard lock(operations.communicator->mutex);
  for (const auto& [stream, collectives] : operations.collectives) {
    nccl::issue(operations.communicator, collectives, streams::enter_or_fail(stream, "ncclGroupEnd"));
  }
  for (const auto& [stream, transfers] : operations.transfers) {
    nccl::issue(operations.communicator, transfers, streams::enter_or_fail(stream, "ncclGroupEnd"));
  }
}

// The handles are given out first: a non-blocking communicator is asked for its state by its handle.
Result Group::run(std::vector<PendingSetup> pending) {
  std::vector<std::shared_ptr<Setup>> setups;
  std::vector<CommunicatorPtr> communicators;
  for (const auto& [setup, communicator, result] : pending) {
    setups.push_back(setup);
    *result = communicator == nullptr ? nullptr : publish(communicator);
    if (communicator != nullptr) communicators.push_back(communicator);
  }
  try {
    return nccl::run(std::move(setups), communicators);
  } catch (const Error&) {
    for (const auto& each : pending) {
      if (*each.result != nullptr) withdraw(std::exchange(*each.result, nullptr));
    }
    throw;
  }
}

}  // namespace phantora::nccl
