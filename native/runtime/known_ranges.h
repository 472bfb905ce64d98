// Which bytes of memory hold a value: disjoint address ranges, each known or tainted; everything else is unknown.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>

#include "phantora/values.h"

namespace phantora::values {

// Neighbouring ranges of one state are kept as one, so the map is as small as the memory is uniform. Every operation is
// O(log n) plus the ranges that it replaces, each of which an earlier one made. Not thread-safe.
class KnownRanges {
 public:
  using Address = uintptr_t;

  void assign(Address begin, Address end, State state);
  State worst(Address begin, Address end) const;  // known for an empty range

  // The stretches of equal state of [begin, end), in order and without gaps.
  template <typename Visit>
  void for_each(Address begin, Address end, Visit&& visit) const {
    for (auto range = first_after(begin); begin < end; ++range) {
      bool last = range == ranges_.end() || range->first >= end;
      Address known_begin = last ? end : std::max(begin, range->first);
      if (begin < known_begin) visit(begin, known_begin, State::unknown);
      if (last) return;
      begin = std::min(end, range->second.end);
      visit(known_begin, begin, range->second.state);
    }
  }

  size_t size() const { return ranges_.size(); }

 private:
  struct Rest {
    Address end;
    State state;
  };
  using Map = std::map<Address, Rest>;

  Map::const_iterator first_after(Address address) const;  // first range that ends after it
  void erase(Address begin, Address end);

  Map ranges_;
};

}  // namespace phantora::values
