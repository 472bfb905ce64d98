// A guess at answers that are not certain, for a job in which nothing moves without one.
#pragma once

#include <functional>
#include <vector>

#include "timeline.h"
#include "world.h"

namespace phantora::netsim {

// Runs on from the state of `guess`, a copy of the world, as if no lane issued anything more than it has, until the
// earliest request that has not been told is answered. Returns it, and those that are answered at the same time. Empty
// if nothing can ever move.
std::vector<Answer> earliest_answers(World& guess, const std::function<bool(RankId, uint64_t)>& told);

}  // namespace phantora::netsim
