// Data of small NCCL messages between ranks, routed by the simulator.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "phantora/export.h"

namespace phantora::exchange PHANTORA_EXPORT {

inline constexpr uint32_t everyone = 0xffffffff;

struct Message {
  uint64_t comm = 0;
  uint64_t sequence = 0;
  uint32_t src = 0;
  uint32_t dst = everyone;
  bool known = true;
  std::string bytes;
};

void send(const Message& message);
// Message (comm, sequence, src → me), if it has come; taking it removes it.
bool take(uint64_t comm, uint64_t sequence, uint32_t src, uint32_t me, Message* out);
bool has(uint64_t comm, uint64_t sequence, uint32_t src, uint32_t me);
void wait_for(uint64_t comm, uint64_t sequence, uint32_t src, uint32_t me);  // blocks really; for communicator set-up

}  // namespace phantora::exchange
