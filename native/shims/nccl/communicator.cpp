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
    void_.erase(handle);
    return handle;
  }

  CommunicatorPtr find(Handle handle) {
    const std::lock_guard lock(mutex_);
    const auto found = live_.find(handle);
    if (found != live_.end()) return found->second;
    if (handle == nullptr) reject("comm is NULL");
    const auto known = void_.find(handle);
    if (known == void_.end()) reject("comm is no communicator");
    reject("comm was " + known->second + ", which has been destroyed or aborted");
  }

  CommunicatorPtr remove(Handle handle) {
    CommunicatorPtr communicator = find(handle);
    const std::lock_guard lock(mutex_);
    live_.erase(handle);
    void_.emplace(handle, communicator->text());
    return communicator;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<Handle, CommunicatorPtr> live_;
  std::unordered_map<Handle, std::string> void_;  // what they stood for, until another one gets the address
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
  changed_.wait(lock, [this] { return outstanding_ == 0 || aborted(); });
}

void Communicator::abort() {
  {
    const std::lock_guard lock(outstanding_mutex_);
    end_ = End::aborted;
    changed_.notify_all();
  }
  release_observers();
  if (index >= 0) exchange::leave(number, static_cast<uint32_t>(index));
  values::exchange_arrived();
  if (definition == 0) return;
  recorder::define(wire::Pack().map(2).text("t").text("comm_abort").text("id").integer(definition).str());
  recorder::record(wire::RecordKind::abort, 0, definition);
}

void Communicator::finalize() {
  check_usable();
  end_ = End::finalized;
}

void Communicator::check_usable() const {
  if (end_ != End::none) throw Error(Result::invalid_usage, text() + " " + end_text());
}

void Communicator::check_replay() const {
  if (end_ == End::none) return;
  fail("NCCL: a CUDA graph is launched that captured calls on " + text() + ", which " + end_text(),
       "NCCL wants such graphs to be destroyed before the communicator; on a GPU this launch would use what has been "
       "freed: reset the graph before destroy_process_group or abort, and capture anew on the next group");
}

std::string Communicator::text() const {
  const std::string named = name.empty() ? "without a name" : name;
  return "communicator " + named + " (member " + std::to_string(index) + " of " + std::to_string(size) + ")";
}

const char* Communicator::end_text() const {
  constexpr const char* texts[] = {"is in use", "was finalized", "was destroyed", "was aborted"};
  return texts[static_cast<size_t>(end_.load())];
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
