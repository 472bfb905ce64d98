// PyTorch's NCCL watchdogs, one thread for each process group. A watchdog sleeps for 100 ms, looks which of its group's
// operations have ended, and sets their tensors aside; the group's next call lets go of them. Left to itself, what
// memory a rank needs depends on when, in real time, it happens to look.
//
// The rule instead: at each NCCL call of lane 0 every watchdog has noticed all that lane 0 has waited for. If lane 0
// has waited for the device since its last NCCL call, the watchdogs are called, and that call goes on when each of them
// has looked once. What they find on their own, in between, is part of that, so it makes no difference.
#pragma once
#include "phantora/export.h"

namespace phantora PHANTORA_EXPORT {

namespace watchdogs {

// Before an NCCL operation is issued: returns when the rule holds.
void look();

}  // namespace watchdogs

}  // namespace phantora PHANTORA_EXPORT
