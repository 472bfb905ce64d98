// Simulated time: integer nanoseconds, from the start of the job.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace phantora::netsim {

using Time = int64_t;

inline constexpr Time kLast = (Time{1} << 62) - 1;                // times saturate here: sums of two never overflow
inline constexpr Time kNever = std::numeric_limits<Time>::max();  // later than every time

// Whatever crosses from one rank to another takes at least this long. All of the core's exactness at equal times rests
// on it: see docs/exactness.md, "Lookahead".
inline constexpr Time kLookahead = 1;

constexpr Time after(Time start, Time span) { return std::min(start + span, kLast); }

}  // namespace phantora::netsim
