#include "signal_channel.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "phantora/activity.h"
#include "phantora/capture.h"
#include "phantora/config.h"
#include "phantora/exchange.h"
#include "phantora/values.h"
#include "phantora/virtual_memory.h"
#include "phantora/wire.h"

namespace phantora::signals {

namespace {

constexpr std::string_view taken_suffix = "taken";

}  // namespace

// Signals under way. The n-th of a member to another meets the n-th wait of that one for it.
class StoreExchange : public values::Exchange {
 public:
  // The channel is locked.
  StoreExchange(ChannelPtr channel, const Stores& stores) : channel_(std::move(channel)), pads_(channel_->pads_) {
    if (stores.awaited.empty()) shown_ = stores.given;
    if (stores.given.empty()) taken_ = stores.awaited;
    for (const Store& store : stores.given) given_.push_back({store.peer, next(channel_->given_[store.peer])});
    for (const Store& store : stores.awaited) awaited_.push_back({store.peer, next(channel_->awaited_[store.peer])});
    if (tells_everyone_alike()) given_ = {{exchange::everyone, given_.front().sequence}};
  }

  void start() override {
    for (const Store& store : shown_) set_word(store.peer, channel_->me_, 1);
    for (const Signal& signal : given_) {
      exchange::send({channel_->data_, signal.sequence, channel_->me_, signal.peer, true, {}});
    }
  }

  bool ready() override {
    return std::all_of(awaited_.begin(), awaited_.end(), [this](const Signal& signal) {
      return exchange::has(channel_->data_, signal.sequence, signal.peer, channel_->me_);
    });
  }

  void apply() override {
    exchange::Message taken;
    for (const Store& store : taken_) set_word(channel_->me_, store.peer, 0);
    for (const Signal& signal : awaited_) {
      exchange::take(channel_->data_, signal.sequence, signal.peer, channel_->me_, &taken);
    }
  }

 private:
  struct Signal {
    uint32_t peer;
    uint64_t sequence;
  };

  // Then one message does for all.
  bool tells_everyone_alike() const {
    return given_.size() > 1 && given_.size() + 1 == channel_->size_ &&
           std::all_of(given_.begin(), given_.end(),
                       [this](const Signal& signal) { return signal.sequence == given_.front().sequence; });
  }

  // What a pad shows of a signal.
  void set_word(uint32_t of, uint32_t from, uint32_t value) const {
    if (pads_.empty()) return;
    char* word = const_cast<char*>(pads_[of]) + (channel_->number_ * channel_->size_ + from) * sizeof value;
    if (!virtual_memory::mapping(word)) return;  // the memory is gone
    std::memcpy(word, &value, sizeof value);
    values::mark_known(word, sizeof value);
  }

  static uint64_t next(uint64_t& count) { return exchange::point_to_point + count++; }

  const ChannelPtr channel_;
  const std::vector<const char*> pads_;
  std::vector<Signal> given_, awaited_;
  std::vector<Store> shown_, taken_;  // in the pads: those of a barrier are taken as soon as they are given
};

namespace {

struct Table {
  std::mutex mutex;
  std::map<std::string, ChannelPtr> channels;  // by uid and member
};

Table& table() {
  static Table* instance = new Table;  // never destroyed: used by exit handlers
  return *instance;
}

template <class Number>
void append(std::string& bytes, Number number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

}  // namespace

// Pads lie in memory whose place in the job is known to all who map it.
Channel::Identity Channel::Identity::of(const std::vector<const char*>& pads, uint64_t member, uint64_t number) {
  Identity identity{"signals", {}, 0};
  append(identity.uid, number);
  for (size_t i = 0; i < pads.size(); ++i) {
    std::optional<virtual_memory::Origin> origin = virtual_memory::origin(pads[i]);
    if (!origin) return {};
    append(identity.uid, origin->rank);
    append(identity.uid, origin->place);
    identity.ranks.push_back(origin->rank);
    if (i == member) identity.device = origin->device;
  }
  return identity;
}

ChannelPtr Channel::find(const std::vector<const char*>& pads, uint64_t member, uint64_t number) {
  if (member >= pads.size()) return nullptr;
  const Identity identity = Identity::of(pads, member, number);
  if (identity.uid.empty()) return nullptr;
  std::string key = identity.uid;
  append(key, member);
  std::lock_guard lock(table().mutex);
  ChannelPtr& channel = table().channels[key];
  if (!channel) channel.reset(new Channel(identity, static_cast<uint32_t>(member), number));
  std::lock_guard channel_lock(channel->mutex_);
  channel->pads_ = pads;
  return channel;
}

Channel::Channel(const Identity& identity, uint32_t member, uint64_t number)
    : identity_(identity),
      number_(number),
      data_(exchange::number_of(identity.uid)),
      size_(static_cast<uint32_t>(identity.ranks.size())),
      me_(member),
      given_(size_),
      awaited_(size_),
      puts_(size_) {
  exchange::join(data_, me_, size_);
  define_comm();
}

// Made when something is put: barriers need none.
const ChannelPtr& Channel::taken() {
  if (taken_) return taken_;
  Identity identity = identity_;
  identity.uid += taken_suffix;
  taken_.reset(new Channel(identity, me_, number_));
  return taken_;
}

void Channel::define_comm() {
  comm_ = recorder::next_definition_id("comm");
  wire::Pack pack;
  pack.map(9).text("t").text("comm").text("id").integer(comm_);
  bool of_taken = identity_.uid.ends_with(taken_suffix);
  std::string name = "symmetric memory, channel " + std::to_string(number_);
  pack.text("name").text(of_taken ? name + ", room for the next signal" : name);
  pack.text("uid").bytes(identity_.uid).text("size").integer(size_).text("index").integer(me_);
  pack.text("device").integer(identity_.device).text("data").integer(static_cast<int64_t>(data_));
  pack.text("ranks").array(size_);
  for (int rank : identity_.ranks) pack.integer(rank);
  recorder::define(pack.str());
}

Stores Channel::with_everyone(uint64_t bytes, bool eager) const {
  Stores stores{.given = {}, .awaited = {}, .eager = eager};
  for (uint32_t member = 0; member < size_; ++member) {
    if (member != me_) stores.given.push_back({member, bytes});
  }
  stores.awaited = stores.given;
  return stores;
}

uint32_t Channel::definition_of(const Stores& stores) {
  wire::Pack pairs;
  pairs.text("comm").integer(comm_).text("op").text("stores").text("eager").integer(stores.eager);
  pairs.text("peers").array(static_cast<uint32_t>(stores.given.size() + stores.awaited.size()));
  auto add = [&pairs](const char* direction, const Store& store) {
    pairs.array(3).text(direction).integer(store.peer).integer(static_cast<int64_t>(store.bytes));
  };
  for (const Store& store : stores.given) add("send", store);
  for (const Store& store : stores.awaited) add("recv", store);
  auto [slot, is_new] = definitions_.try_emplace(pairs.str(), 0);
  if (is_new) {
    slot->second = recorder::next_definition_id("collective");
    wire::Pack pack;
    pack.map(6).text("t").text("collective").text("id").integer(slot->second).raw(pairs.str());
    recorder::define(pack.str());
  }
  return slot->second;
}

// A pad's word holds one signal: who puts another waits until the one that was put there before has been taken.
void Channel::enqueue(const ChannelPtr& channel, const Stores& stores, StreamId stream) {
  std::lock_guard lock(channel->mutex_);
  bool puts = stores.awaited.empty(), waits = stores.given.empty();
  for (const Store& store : puts ? stores.given : std::vector<Store>{}) {
    if (channel->puts_[store.peer]++ > 0) move(channel->taken(), {.given = {}, .awaited = {store}}, stream);
  }
  move(channel, stores, stream);
  if (waits) move(channel->taken(), {.given = stores.awaited, .awaited = {}}, stream);
}

// They come with a kernel, so they take no place of their own in the launch queue.
void Channel::move(const ChannelPtr& channel, const Stores& stores, StreamId stream) {
  {
    activity::Issue issue(stream, "stores");
    uint32_t definition = channel->definition_of(stores);
    recorder::record(wire::RecordKind::collective, stream, definition, 0, wire::within_launch);
  }
  if (!config().null_sink) values::submit(stream, std::make_shared<StoreExchange>(channel, stores));
}

void Channel::issue(const ChannelPtr& channel, const Stores& stores, StreamId stream) {
  auto again = [channel, stores](StreamId launched) { enqueue(channel, stores, launched); };
  if (!captures::attach(stream, again)) enqueue(channel, stores, stream);
}

}  // namespace phantora::signals
