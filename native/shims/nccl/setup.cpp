#include "nccl/setup.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <utility>

#include "nccl/collective.h"
#include "nccl/error.h"
#include "phantora/config.h"
#include "phantora/device.h"
#include "phantora/exchange.h"
#include "phantora/memory.h"
#include "phantora/recorder.h"
#include "phantora/streams.h"

namespace phantora::nccl {
namespace {

// Device memory that NCCL takes for a communicator of several members, outside PyTorch's allocator. A channel's ring
// keeps a receive buffer per protocol: Simple 4 MiB (NCCL_BUFFSIZE), LL128 640 threads x 120 words x 8 steps x 8 bytes,
// LL 512 threads x 8 lines x 8 steps x 16 bytes. One channel for each NVLink of a GPU, at least two.
size_t buffer_bytes() {
  constexpr size_t simple = 4u << 20;
  constexpr size_t ll128 = 640 * 120 * 8 * 8;
  constexpr size_t ll = 512 * 8 * 8 * 16;
  return static_cast<size_t>(std::max(2, config().nvlink_count)) * (simple + ll128 + ll);
}

void take_buffers(Communicator& communicator) {
  communicator.buffer_bytes = buffer_bytes();
  communicator.buffers = memory::allocate(communicator.device, communicator.buffer_bytes);
  if (communicator.buffers == nullptr) {
    throw Error(Result::unhandled_cuda_error,
                "Cuda failure 'out of memory': " + std::to_string(communicator.buffer_bytes) +
                    " bytes for the buffers of a communicator");
  }
}

void identify(Communicator& communicator, std::string uid, int size, int index) {
  communicator.number = exchange::number_of(uid);
  communicator.uid = std::move(uid);
  communicator.size = size;
  communicator.index = index;
}

void join(const Communicator& communicator) {
  exchange::join(communicator.number, static_cast<uint32_t>(communicator.index),
                 static_cast<uint32_t>(communicator.size));
}

void define(Communicator& communicator) {
  communicator.within_process = exchange::all_here(communicator.number);
  communicator.definition = recorder::next_definition_id("comm");
  wire::Pack pack;
  pack.map(8).text("t").text("comm").text("id").integer(communicator.definition);
  pack.text("name").text(communicator.name);
  pack.text("uid").bytes(communicator.uid).text("size").integer(communicator.size);
  pack.text("index").integer(communicator.index).text("device").integer(device::physical(communicator.device));
  pack.text("data").integer(static_cast<int64_t>(communicator.number));
  recorder::define(pack.str());
}

uint32_t define_host_group(const Meeting& meeting) {
  const uint32_t id = recorder::next_definition_id("host_group");
  wire::Pack pack;
  pack.map(6).text("t").text("host_group").text("id").integer(id).text("uid").bytes(meeting.uid);
  pack.text("size").integer(meeting.size).text("index").integer(meeting.index).text("what").text("comm_init");
  recorder::define(pack.str());
  return id;
}

// An operation by which all members of a communicator meet, on a stream of its own.
class Barrier {
 public:
  explicit Barrier(const CommunicatorPtr& communicator) : stream_(streams::create(communicator->device, true, 0)) {
    const std::lock_guard lock(communicator->mutex);
    issue_barrier(*communicator, id());
  }
  ~Barrier() { streams::destroy(stream_); }
  Barrier(const Barrier&) = delete;
  Barrier& operator=(const Barrier&) = delete;

  void wait() const { recorder::sync_stream(id()); }

 private:
  StreamId id() const { return streams::find(stream_)->id; }

  streams::Handle stream_;
};

class InitRank : public Setup {
 public:
  InitRank(CommunicatorPtr communicator, std::string uid, int size, int index)
      : communicator_(std::move(communicator)) {
    identify(*communicator_, uid, size, index);
    meeting_ = {std::move(uid), size, index};
  }

  const Meeting& meeting() const override { return meeting_; }
  const CommunicatorPtr& place() const override { return communicator_; }
  bool blocking() const override { return communicator_->blocking; }
  void join() override { nccl::join(*communicator_); }
  void announce() override { define(*communicator_); }
  void agree() override {}
  void publish() override {
    if (communicator_->size > 1) take_buffers(*communicator_);
  }

 private:
  CommunicatorPtr communicator_;
  Meeting meeting_;
};

// What a member tells all others of a split.
struct Choice {
  int32_t color;
  int32_t key;
};

class Split : public Setup {
 public:
  Split(CommunicatorPtr parent, Choice choice, CommunicatorPtr child, bool shares_buffers)
      : parent_(std::move(parent)), choice_(choice), child_(std::move(child)), shares_buffers_(shares_buffers) {
    const std::lock_guard lock(parent_->mutex);
    ordinal_ = parent_->splits++;
    meeting_ = {parent_->uid + "/" + std::to_string(ordinal_), parent_->size, parent_->index};
  }

  const Meeting& meeting() const override { return meeting_; }
  const CommunicatorPtr& place() const override { return parent_; }
  bool blocking() const override { return child_ == nullptr ? parent_->blocking : child_->blocking; }
  void join() override {}

  void announce() override {
    if (!parent_->within_process && config().null_sink) {
      fail("NCCL: a communicator is split without a simulator", "run the program with `phantora run`");
    }
    exchange::Message message;
    message.comm = parent_->number;
    message.sequence = sequence();
    message.src = static_cast<uint32_t>(parent_->index);
    message.bytes.assign(reinterpret_cast<const char*>(&choice_), sizeof choice_);
    exchange::send(std::move(message));
  }

  void agree() override {
    struct Member {
      int32_t key;
      int index;
      auto operator<=>(const Member&) const = default;
    };
    std::vector<Member> members;
    for (int index = 0; index < parent_->size; ++index) {
      const Choice choice = index == parent_->index ? choice_ : receive(index);
      if (choice.color == choice_.color) members.push_back({choice.key, index});
    }
    if (child_ == nullptr) return;
    std::sort(members.begin(), members.end());
    const auto me = std::find_if(members.begin(), members.end(),
                                 [this](const Member& member) { return member.index == parent_->index; });
    identify(*child_, meeting_.uid + "." + std::to_string(choice_.color), static_cast<int>(members.size()),
             static_cast<int>(me - members.begin()));
    nccl::join(*child_);
  }

  void publish() override {
    if (child_ == nullptr) return;
    if (child_->size > 1 && !shares_buffers_) take_buffers(*child_);
    define(*child_);
  }

 private:
  uint64_t sequence() const { return exchange::setup + ordinal_; }

  Choice receive(int index) {
    const auto from = static_cast<uint32_t>(index), me = static_cast<uint32_t>(parent_->index);
    exchange::Message message;
    if (!exchange::wait_for(parent_->number, sequence(), from, me) ||
        !exchange::take(parent_->number, sequence(), from, me, &message)) {
      throw Error(Result::invalid_usage, "the communicator was aborted while it was split");
    }
    Choice choice;
    std::memcpy(&choice, message.bytes.data(), sizeof choice);
    return choice;
  }

  CommunicatorPtr parent_;
  Choice choice_;
  CommunicatorPtr child_;
  bool shares_buffers_;
  uint64_t ordinal_ = 0;
  Meeting meeting_;
};

}  // namespace

// Set-ups that go on together.
class Batch {
 public:
  explicit Batch(std::vector<std::shared_ptr<Setup>> setups) : setups_(std::move(setups)) {}

  bool blocking() const {
    return std::all_of(setups_.begin(), setups_.end(), [](const auto& setup) { return setup->blocking(); });
  }

  void start() {
    for (const auto& setup : setups_) require_rank(*setup);
    for (const auto& setup : setups_) setup->join();
    for (const auto& setup : setups_) setup->announce();
    if (!within_process() && !(blocking() && setups_.size() == 1)) {
      for (const auto& setup : setups_) barriers_.push_back(std::make_unique<Barrier>(setup->place()));
    }
  }

  // On the lane of whoever needs the communicators first.
  void finish() {
    const std::lock_guard lock(mutex_);
    if (failure_) throw *failure_;
    if (finished_) return;
    finished_ = true;
    meet();
    try {
      for (const auto& setup : setups_) setup->agree();
      for (const auto& setup : setups_) setup->publish();
    } catch (const Error& error) {
      failure_ = error;
      throw;
    }
  }

 private:
  void meet() {
    if (within_process()) {
      recorder::host_sync(define_host_group({setups_[0]->meeting().uid, 1, 0}));
    } else if (barriers_.empty()) {
      recorder::host_sync(define_host_group(setups_[0]->meeting()));
    }
    for (const auto& barrier : barriers_) barrier->wait();
  }

  bool within_process() const { return all_here(*setups_[0]) && all_here(*setups_[0]) == setups_.size(); }

  // How many set-ups of this batch meet with this one, if that is everybody; else 0.
  size_t all_here(const Setup& setup) const {
    const Meeting& meeting = setup.meeting();
    const auto here = std::count_if(setups_.begin(), setups_.end(),
                                    [&](const auto& other) { return other->meeting().uid == meeting.uid; });
    return here == meeting.size ? static_cast<size_t>(here) : 0;
  }

  void require_rank(const Setup& setup) const {
    if (all_here(setup) || recorder::active()) return;
    fail("NCCL: a communicator of " + std::to_string(setup.meeting().size) + " ranks in a process that is no rank",
         "ranks come from torchrun, `phantora run ... -- torchrun --nproc-per-node N SCRIPT`; a process that the "
         "program starts by itself (torch.multiprocessing.spawn, say) is none");
  }

  std::vector<std::shared_ptr<Setup>> setups_;
  std::vector<std::unique_ptr<Barrier>> barriers_;
  std::mutex mutex_;
  bool finished_ = false;
  std::optional<Error> failure_;
};

std::shared_ptr<Setup> init_rank(CommunicatorPtr communicator, std::string uid, int size, int index) {
  return std::make_shared<InitRank>(std::move(communicator), std::move(uid), size, index);
}

std::shared_ptr<Setup> split(CommunicatorPtr parent, int color, int key, CommunicatorPtr child, bool shares_buffers) {
  return std::make_shared<Split>(std::move(parent), Choice{color, key}, std::move(child), shares_buffers);
}

Result run(std::vector<std::shared_ptr<Setup>> setups, const std::vector<CommunicatorPtr>& communicators) {
  const auto batch = std::make_shared<Batch>(std::move(setups));
  batch->start();
  if (batch->blocking()) {
    batch->finish();
    return Result::success;
  }
  for (const auto& communicator : communicators) {
    const std::lock_guard lock(communicator->mutex);
    communicator->setup = batch;
  }
  return Result::in_progress;
}

void settle(Communicator& communicator) {
  std::shared_ptr<Batch> batch;
  {
    const std::lock_guard lock(communicator.mutex);
    batch = communicator.setup;
  }
  if (batch == nullptr) return;
  batch->finish();
  const std::lock_guard lock(communicator.mutex);
  communicator.setup = nullptr;
}

std::string fresh_uid() {
  static std::atomic<uint64_t> made{0};
  return "phantora " + std::to_string(config().rank) + " " + std::to_string(made++);
}

}  // namespace phantora::nccl
