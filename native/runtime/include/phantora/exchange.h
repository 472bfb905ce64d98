// Data of small NCCL messages between members of a communicator: through the simulator, which routes them, or directly
// when both members live in this process.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "phantora/export.h"

namespace phantora {
namespace exchange PHANTORA_EXPORT {

inline constexpr uint32_t everyone = 0xffffffff;  // as a destination: every other member

// What DATA frames call the communicator of that uid.
uint64_t number_of(std::string_view uid);

// Sequence numbers of messages: each purpose counts for itself (docs/protocol.md, "Values").
inline constexpr uint64_t collective = 0;
inline constexpr uint64_t point_to_point = uint64_t{1} << 62;
inline constexpr uint64_t setup = uint64_t{2} << 62;

struct Message {
  uint64_t comm = 0;
  uint64_t sequence = 0;
  uint32_t src = 0;
  uint32_t dst = everyone;
  bool known = true;
  std::string bytes;
};

// Member `member` of communicator `comm`, which has `size` members, lives in this process. Must come before the
// simulator hears of it (its "comm" definition): from then on messages arrive, and those for everyone are meant for
// those who joined.
void join(uint64_t comm, uint32_t member, uint32_t size);
void leave(uint64_t comm, uint32_t member);  // forgets its messages and ends its waits
bool all_here(uint64_t comm);                // every member has joined in this process

void send(Message message);
// Message (comm, sequence, src → me), if it has come; taking it removes it.
bool take(uint64_t comm, uint64_t sequence, uint32_t src, uint32_t me, Message* out);
bool has(uint64_t comm, uint64_t sequence, uint32_t src, uint32_t me);
// Blocks really until it has come; false if `me` left meanwhile. For communicator set-up.
bool wait_for(uint64_t comm, uint64_t sequence, uint32_t src, uint32_t me);

}  // namespace exchange PHANTORA_EXPORT
}  // namespace phantora
