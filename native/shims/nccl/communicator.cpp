#include "nccl/communicator.h"

#include <algorithm>

#include "nccl/error.h"
#include "nccl/setup.h"
#include "phantora/config.h"
#include "phantora/exchange.h"
#include "phantora/memory.h"
#include "phantora/recorder.h"
#include "phantora/values.h"

namespace phantora::nccl {
namespace {

constexpr size_t largest_message = 8u << 20;  // a frame of the protocol holds 16 MiB

class Handles {
 public:
  Handle add(CommunicatorPtr communicator) {
    const std::lock_guard lock(mutex_);
    const Handle handle = communicator.get();
    live_.emplace(handle, std::move(communicator));
    return handle;
  }

  CommunicatorPtr find(Handle handle) {
    const std::lock_guard lock(mutex_);
    const auto found = live_.find(handle);
    if (found == live_.end()) reject(handle == nullptr ? "comm is NULL" : "comm is no communicator, or was destroyed");
    return found->second;
  }

  CommunicatorPtr remove(Handle handle) {
    CommunicatorPtr communicator = find(handle);
    const std::lock_guard lock(mutex_);
    live_.erase(handle);
    return communicator;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<Handle, CommunicatorPtr> live_;
};

// Never destroyed: communicators that the program left open stay so until the process has ended.
Handles& handles() {
  static auto& instance = *new Handles;
  return instance;
}

}  // namespace

Communicator::~Communicator() {
  if (index >= 0) exchange::leave(number, static_cast<uint32_t>(index));
  if (buffers != nullptr) memory::release(buffers);
}

uint32_t Communicator::definition_of(const std::string& packed, uint32_t pairs) {
  const auto [found, fresh] = definitions_.try_emplace(packed, 0);
  if (fresh) {
    found->second = recorder::next_definition_id("collective");
    wire::Pack pack;
    pack.map(pairs + 3).text("t").text("collective").text("id").integer(found->second);
    pack.text("comm").integer(definition).raw(packed);
    recorder::define(pack.str());
  }
  return found->second;
}

size_t Communicator::add_custom(const CustomReduction& reduction) {
  size_t slot = 0;
  while (slot < custom.size() && custom[slot]) ++slot;
  if (slot == custom.size()) custom.emplace_back();
  custom[slot] = reduction;
  return slot;
}

bool Communicator::carries(size_t bytes) const {
  const bool reachable = within_process || !config().null_sink;
  return reachable && bytes <= std::min<uint64_t>(config().value_copy_limit_bytes, largest_message);
}

Communicator::Outstanding::Outstanding(Communicator& communicator) : communicator_(communicator) {
  const std::lock_guard lock(communicator_.outstanding_mutex_);
  ++communicator_.outstanding_;
}

Communicator::Outstanding::~Outstanding() {
  const std::lock_guard lock(communicator_.outstanding_mutex_);
  --communicator_.outstanding_;
  communicator_.changed_.notify_all();
}

void Communicator::uses(StreamId stream) {
  const std::lock_guard lock(outstanding_mutex_);
  streams_.insert(stream);
}

std::set<StreamId> Communicator::streams() {
  const std::lock_guard lock(outstanding_mutex_);
  return streams_;
}

// A watchdog ends when it has seen the end of all its work, which lane 0 may never wait for.
void Communicator::release_observers() {
  for (const StreamId stream : streams()) recorder::release_observers(stream);
}

void Communicator::complete() {
  for (const StreamId stream : streams()) recorder::sync_stream(stream);
  release_observers();
  std::unique_lock lock(outstanding_mutex_);
  changed_.wait(lock, [this] { return outstanding_ == 0 || aborted_; });
}

void Communicator::abort() {
  {
    const std::lock_guard lock(outstanding_mutex_);
    aborted_ = true;
    changed_.notify_all();
  }
  release_observers();
  if (index >= 0) exchange::leave(number, static_cast<uint32_t>(index));
  values::exchange_arrived();
  if (definition == 0) return;
  recorder::define(wire::Pack().map(2).text("t").text("comm_abort").text("id").integer(definition).str());
}

Handle publish(CommunicatorPtr communicator) { return handles().add(std::move(communicator)); }
CommunicatorPtr find(Handle handle) { return handles().find(handle); }
CommunicatorPtr withdraw(Handle handle) { return handles().remove(handle); }

CommunicatorPtr find_ready(Handle handle) {
  CommunicatorPtr communicator = find(handle);
  settle(*communicator);
  return communicator;
}

}  // namespace phantora::nccl
