#include "known_ranges.h"

#include <algorithm>
#include <iterator>

namespace phantora::values {

KnownRanges::Map::const_iterator KnownRanges::first_after(Address address) const {
  auto range = ranges_.upper_bound(address);
  if (range != ranges_.begin() && std::prev(range)->second.end > address) --range;
  return range;
}

void KnownRanges::erase(Address begin, Address end) {
  auto range = first_after(begin);
  if (range == ranges_.end() || range->first >= end) return;
  if (range->first < begin) {
    Rest tail = range->second;
    ranges_.find(range->first)->second.end = begin;
    if (tail.end > end) {
      ranges_.emplace(end, tail);
      return;
    }
    ++range;
  }
  while (range != ranges_.end() && range->second.end <= end) range = ranges_.erase(range);
  if (range != ranges_.end() && range->first < end) {
    Rest tail = range->second;
    ranges_.emplace_hint(ranges_.erase(range), end, tail);
  }
}

void KnownRanges::assign(Address begin, Address end, State state) {
  if (begin >= end) return;
  if (state == State::unknown) return erase(begin, end);
  auto covering = first_after(begin);
  if (covering != ranges_.end() && covering->first <= begin && covering->second.end >= end &&
      covering->second.state == state) {
    return;
  }
  erase(begin, end);
  auto next = ranges_.lower_bound(end);
  if (next != ranges_.end() && next->first == end && next->second.state == state) {
    end = next->second.end;
    next = ranges_.erase(next);
  }
  if (next != ranges_.begin()) {
    auto before = std::prev(next);
    if (before->second.end == begin && before->second.state == state) {
      before->second.end = end;
      return;
    }
  }
  ranges_.emplace_hint(next, begin, Rest{end, state});
}

State KnownRanges::worst(Address begin, Address end) const {
  State worst = State::known;
  for_each(begin, end, [&worst](Address, Address, State state) { worst = std::max(worst, state); });
  return worst;
}

}  // namespace phantora::values
