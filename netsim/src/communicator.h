// Which calls of different ranks belong together.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "activity.h"
#include "flow.h"
#include "ids.h"
#include "ring.h"
#include "sim_time.h"

namespace phantora::netsim {

// One collective. The k-th call of each member on a communicator belongs to the k-th operation.
struct Operation {
  struct Member {
    bool come = false;
    bool ready = false;  // its stream has reached it
    RankId rank{};
    StreamId stream{};
    uint32_t definition = 0;
    uint64_t key = 0;  // what is asked for: members must agree
    Precedence precedence{};
    const Activity* activity = nullptr;
  };

  CommId comm{};
  uint64_t sequence = 0;
  std::vector<Member> members;
  uint32_t come = 0;
  uint32_t ready = 0;
  uint64_t key = 0;  // of the member that the core heard of first
  bool mismatched = false;
  Time start = 0;              // of those ready, the latest
  std::optional<FlowId> flow;  // while it is under way
};

// One message. The k-th send i → j on a communicator meets the k-th receive on j from i. An eager one starts when the
// sender is ready, who goes on at once; the receiver goes on when it has come.
struct Transfer {
  struct Side {
    bool come = false;
    bool ready = false;  // its stream has reached it,
    Time at = 0;         // then
    RankId rank{};
    LaunchId launch{};
    uint32_t definition = 0;
    uint64_t key = 0;  // what is sent, or wanted
  };

  Side sender;
  Side receiver;
  CommId comm{};
  uint32_t source = 0;  // member indices
  uint32_t destination = 0;
  uint64_t sequence = 0;
  Precedence precedence{};
  const Activity* activity = nullptr;
  bool eager = false;          // as the sender says
  bool ended = false;          // and its receiver is not ready
  Time end = 0;                // if it has ended
  std::optional<FlowId> flow;  // once it has begun

  bool mismatched() const { return sender.come && receiver.come && sender.key != receiver.key; }
};

// One rank's launch of sends and receives.
struct Launch {
  RankId rank{};
  StreamId stream{};
  std::vector<TransferId> transfers;
  uint32_t outstanding = 0;
  Time latest = 0;  // of the transfers that have ended
};

// Messages of one direction whose two sides have not both come.
struct Channel {
  Ring<TransferId> open;
  uint64_t first = 0;  // sequence of open's front
  uint64_t sends = 0;
  uint64_t receives = 0;
};

struct Communicator {
  uint32_t size = 0;
  std::vector<uint64_t> calls;                     // of each member, collectives so far
  Ring<OperationId> open;                          // by sequence; ended ones in the middle are kept
  uint64_t first = 0;                              // sequence of open's front
  std::unordered_map<uint64_t, Channel> channels;  // by source and destination
  std::vector<Time> aborts;                        // when each member aborted it, kNever if it has not

  bool has_aborted(uint32_t member) const { return aborts[member] < kNever; }
};

inline constexpr LaunchId kEndedLaunch{UINT32_MAX};
inline constexpr OperationId kEndedOperation{UINT32_MAX};

}  // namespace phantora::netsim
