#include "phantora/exchange.h"

#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "phantora/recorder.h"
#include "phantora/values.h"

namespace phantora::exchange {
namespace {

constexpr uint32_t known_flag = 1;

// Start of a DATA payload (docs/protocol.md, "Values"); the bytes follow.
struct Header {
  uint64_t comm;
  uint64_t sequence;
  uint32_t src;
  uint32_t dst;
  uint32_t flags;
  uint32_t zero;
};
static_assert(sizeof(Header) == 32);

std::string encode(const Message& message) {
  const Header header{message.comm, message.sequence, message.src, message.dst, message.known ? known_flag : 0, 0};
  std::string payload(sizeof header + message.bytes.size(), '\0');
  std::memcpy(payload.data(), &header, sizeof header);
  message.bytes.copy(payload.data() + sizeof header, message.bytes.size());
  return payload;
}

Message decode(std::string_view payload) {
  Header header;
  if (payload.size() < sizeof header) {
    fail("a DATA frame of " + std::to_string(payload.size()) + " bytes is shorter than its header",
         "simulator and runtime are of different versions; reinstall phantora_py");
  }
  std::memcpy(&header, payload.data(), sizeof header);
  return {header.comm,
          header.sequence,
          header.src,
          header.dst,
          (header.flags & known_flag) != 0,
          std::string(payload.substr(sizeof header))};
}

// The members that live in this process, and what has come for them. Messages for a communicator without members here
// (it was aborted) are dropped.
class Mailbox {
 public:
  void join(uint64_t comm, uint32_t member, uint32_t size) {
    const std::lock_guard lock(mutex_);
    Communicator& communicator = communicators_[comm];
    communicator.size = size;
    communicator.members[member];
  }

  void leave(uint64_t comm, uint32_t member) {
    {
      const std::lock_guard lock(mutex_);
      const auto found = communicators_.find(comm);
      if (found == communicators_.end()) return;
      found->second.members.erase(member);
      if (found->second.members.empty()) communicators_.erase(found);
    }
    changed_.notify_all();
  }

  bool all_here(uint64_t comm) {
    const std::lock_guard lock(mutex_);
    const auto found = communicators_.find(comm);
    return found != communicators_.end() && found->second.members.size() == found->second.size;
  }

  // Of a message to everyone, a process that holds its source too has had its share directly.
  void receive(const Message& message) {
    {
      const std::lock_guard lock(mutex_);
      if (find(message.comm, message.src) != nullptr) return;
    }
    deliver(message);
  }

  // Stores the message for those of its receivers that live here. True if it has others.
  bool deliver(const Message& message) {
    bool elsewhere = false;
    {
      const std::lock_guard lock(mutex_);
      const auto found = communicators_.find(message.comm);
      if (found == communicators_.end()) return true;
      Communicator& communicator = found->second;
      if (message.dst != everyone) {
        const auto member = communicator.members.find(message.dst);
        if (member == communicator.members.end()) return true;
        member->second.emplace(Key{message.src, message.sequence}, message);
      } else {
        for (auto& [member, messages] : communicator.members) {
          if (member != message.src) messages.emplace(Key{message.src, message.sequence}, message);
        }
        elsewhere = communicator.members.size() < communicator.size;
      }
    }
    changed_.notify_all();
    return elsewhere;
  }

  bool take(uint64_t comm, uint64_t sequence, uint32_t src, uint32_t me, Message* out) {
    const std::lock_guard lock(mutex_);
    Messages* messages = find(comm, me);
    if (messages == nullptr) return false;
    const auto found = messages->find(Key{src, sequence});
    if (found == messages->end()) return false;
    *out = std::move(found->second);
    messages->erase(found);
    return true;
  }

  bool has(uint64_t comm, uint64_t sequence, uint32_t src, uint32_t me) {
    const std::lock_guard lock(mutex_);
    const Messages* messages = find(comm, me);
    return messages != nullptr && messages->contains(Key{src, sequence});
  }

  bool wait_for(uint64_t comm, uint64_t sequence, uint32_t src, uint32_t me) {
    std::unique_lock lock(mutex_);
    for (;;) {
      const Messages* messages = find(comm, me);
      if (messages == nullptr) return false;
      if (messages->contains(Key{src, sequence})) return true;
      changed_.wait(lock);
    }
  }

 private:
  using Key = std::pair<uint32_t, uint64_t>;  // source, sequence
  using Messages = std::map<Key, Message>;

  struct Communicator {
    uint32_t size = 0;
    std::map<uint32_t, Messages> members;  // those that live here
  };

  Messages* find(uint64_t comm, uint32_t member) {
    const auto communicator = communicators_.find(comm);
    if (communicator == communicators_.end()) return nullptr;
    const auto messages = communicator->second.members.find(member);
    return messages == communicator->second.members.end() ? nullptr : &messages->second;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::unordered_map<uint64_t, Communicator> communicators_;
};

// Never destroyed: the reader thread may deliver while the process exits.
Mailbox& mailbox() {
  static Mailbox& instance = []() -> Mailbox& {
    auto* created = new Mailbox;
    recorder::on_data([created](std::string_view payload) {
      created->receive(decode(payload));
      values::exchange_arrived();
    });
    return *created;
  }();
  return instance;
}

}  // namespace

// FNV-1a, then a finaliser that spreads it. 63 bits, so that it is a positive msgpack integer everywhere.
uint64_t number_of(std::string_view uid) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : uid) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  hash = (hash ^ (hash >> 33)) * 0xff51afd7ed558ccd;
  hash = (hash ^ (hash >> 33)) * 0xc4ceb9fe1a85ec53;
  return (hash ^ (hash >> 33)) & INT64_MAX;
}

void join(uint64_t comm, uint32_t member, uint32_t size) { mailbox().join(comm, member, size); }
void leave(uint64_t comm, uint32_t member) { mailbox().leave(comm, member); }
bool all_here(uint64_t comm) { return mailbox().all_here(comm); }

void send(Message message) {
  const bool elsewhere = mailbox().deliver(message);
  if (elsewhere) recorder::send_data(encode(message));
  if (!elsewhere || message.dst == everyone) values::exchange_arrived();
}

bool take(uint64_t comm, uint64_t sequence, uint32_t src, uint32_t me, Message* out) {
  return mailbox().take(comm, sequence, src, me, out);
}
bool has(uint64_t comm, uint64_t sequence, uint32_t src, uint32_t me) { return mailbox().has(comm, sequence, src, me); }
bool wait_for(uint64_t comm, uint64_t sequence, uint32_t src, uint32_t me) {
  return mailbox().wait_for(comm, sequence, src, me);
}

}  // namespace phantora::exchange
