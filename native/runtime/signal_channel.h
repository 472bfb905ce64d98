// A channel of symmetric memory: the words of all ranks' pads that signals of one purpose go to. To the simulator it is
// a communicator.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "phantora/recorder.h"

namespace phantora::signals {

struct Store {
  uint32_t peer;   // member of the channel
  uint64_t bytes;  // 0: it is but a signal
};

// What one kernel stores in others' memory, and what it waits for them to store in its own.
struct Stores {
  std::vector<Store> given;
  std::vector<Store> awaited;
  bool eager = true;  // else each starts when its receiver waits for it
};

class Channel;
using ChannelPtr = std::shared_ptr<Channel>;

class Channel {
 public:
  // `pads`: where each member's pad is mapped here. Null if these are no pads that ranks share.
  static ChannelPtr find(const std::vector<const char*>& pads, uint64_t member, uint64_t number);

  Stores with_everyone(uint64_t bytes, bool eager) const;

  // What follows on the stream comes after all that is awaited.
  static void issue(const ChannelPtr& channel, const Stores& stores, StreamId stream);

 private:
  friend class StoreExchange;

  struct Identity {
    std::string uid;         // the same on all members
    std::vector<int> ranks;  // of the job, by member
    int device = 0;          // of this member, physical
    static Identity of(const std::vector<const char*>& pads, uint64_t member, uint64_t number);
  };

  Channel(const Identity& identity, uint32_t member, uint64_t number);

  void define_comm();
  uint32_t definition_of(const Stores& stores);
  const ChannelPtr& taken();
  static void enqueue(const ChannelPtr& channel, const Stores& stores, StreamId stream);
  static void move(const ChannelPtr& channel, const Stores& stores, StreamId stream);

  const Identity identity_;
  const uint64_t number_;
  const uint64_t data_;  // what messages call it
  const uint32_t size_;
  const uint32_t me_;
  uint32_t comm_ = 0;              // the simulator's definition
  std::mutex mutex_;               // held while signals are issued, so that their order is one for simulator and values
  std::vector<const char*> pads_;  // of the latest use
  std::map<std::string, uint32_t> definitions_;
  std::vector<uint64_t> given_;    // so far, to each member
  std::vector<uint64_t> awaited_;  // likewise
  std::vector<uint64_t> puts_;     // of the given, by put_signal
  ChannelPtr taken_;               // back to who has put them
};

}  // namespace phantora::signals
