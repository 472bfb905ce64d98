#include "state_map.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "zero_pages.h"

namespace phantora::values {

size_t StateMap::equal_length(const uint8_t* states, size_t limit) {
  const uint8_t* end = states + limit;
  return static_cast<size_t>(std::find_if(states, end, [first = *states](uint8_t byte) { return byte != first; }) -
                             states);
}

void StateMap::assign(Address begin, Address end, State state) {
  auto own = [&](Address from, Address to) { own_.assign(from, to, state); };
  auto shared = [&](Address from, Address to, const Shared& range) {
    if (!range.states) return range.stored(from - range.begin, to - from);
    if (state == State::unknown) return zero_pages(range.at(from), to - from);
    std::memset(range.at(from), encode(state), to - from);
  };
  split(begin, end, own, shared);
}

State StateMap::worst(Address begin, Address end) const {
  State worst = State::known;
  for_each(begin, end, [&worst](Address, Address, State state) { worst = std::max(worst, state); });
  return worst;
}

void StateMap::share(Address begin, Address end, uint8_t* states) {
  own_.for_each(begin, end, [&](Address from, Address to, State state) {
    if (state != State::unknown) std::memset(states + (from - begin), encode(state), to - from);
  });
  own_.assign(begin, end, State::unknown);
  shared_[begin] = {begin, end, states, {}};
}

void StateMap::relay(Address begin, Address end, Stored stored) {
  own_.assign(begin, end, State::unknown);
  shared_[begin] = {begin, end, nullptr, std::move(stored)};
}

void StateMap::unshare(Address begin, Address end) {
  auto first = shared_.lower_bound(begin);
  shared_.erase(first, shared_.lower_bound(end));
}

}  // namespace phantora::values
