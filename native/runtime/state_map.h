// The state of every byte of memory. Memory that has several addresses, or is seen by several processes, has its states
// beside its bytes; all other memory has them here, by address.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>

#include "known_ranges.h"
#include "phantora/values.h"

namespace phantora::values {

// Not thread-safe.
class StateMap {
 public:
  using Address = KnownRanges::Address;

  void assign(Address begin, Address end, State state);
  State worst(Address begin, Address end) const;

  // The stretches of equal state of [begin, end), in order and without gaps.
  template <typename Visit>
  void for_each(Address begin, Address end, Visit&& visit) const {
    auto own = [&](Address from, Address to) { own_.for_each(from, to, visit); };
    auto shared = [&](Address from, Address to, const Shared& range) {
      if (!range.states) return visit(from, to, State::unknown);
      const uint8_t* states = range.at(from);
      while (from < to) {
        size_t length = equal_length(states, to - from);
        visit(from, from + length, decode(*states));
        from += length;
        states += length;
      }
    };
    split(begin, end, own, shared);
  }

  // From now on [begin, end) has its states at `states`, a byte each. What was known here is written there.
  void share(Address begin, Address end, uint8_t* states);
  // From now on [begin, end) is unknown whatever it is assigned, and `stored` is told where in it that is.
  void relay(Address begin, Address end, Stored stored);
  void unshare(Address begin, Address end);  // whole ranges that were shared or relayed; unknown afterwards

 private:
  struct Shared {
    Address begin, end;
    uint8_t* states;  // null: relayed
    Stored stored;

    uint8_t* at(Address address) const { return states + (address - begin); }
  };

  // Untouched pages of states are zeros: unknown.
  static uint8_t encode(State state) {
    return static_cast<uint8_t>(static_cast<int>(State::unknown) - static_cast<int>(state));
  }
  static State decode(uint8_t byte) { return static_cast<State>(static_cast<int>(State::unknown) - byte); }
  static size_t equal_length(const uint8_t* states, size_t limit);

  template <typename Own, typename Here>
  void split(Address begin, Address end, Own&& own, Here&& here) const {
    if (shared_.empty()) return own(begin, end);
    auto range = shared_.upper_bound(begin);
    if (range != shared_.begin() && std::prev(range)->second.end > begin) --range;
    while (begin < end) {
      bool last = range == shared_.end() || range->first >= end;
      Address shared_begin = last ? end : std::max(begin, range->first);
      if (begin < shared_begin) own(begin, shared_begin);
      if (last) return;
      Address shared_end = std::min(end, range->second.end);
      here(shared_begin, shared_end, range->second);
      begin = shared_end;
      ++range;
    }
  }

  KnownRanges own_;
  std::map<Address, Shared> shared_;
};

}  // namespace phantora::values
