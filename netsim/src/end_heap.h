// Flows by the time at which they end, which may change.
#pragma once

#include <cstdint>
#include <vector>

#include "ids.h"
#include "sim_time.h"

namespace phantora::netsim {

class EndHeap {
 public:
  bool empty() const { return heap_.empty(); }
  FlowId top() const { return heap_.front().flow; }
  Time first() const { return heap_.front().end; }

  // The flow, which may be new, ends at `end`.
  void place(FlowId flow, Time end) {
    if (!places_.contains(flow)) places_.resize(index(flow) + 1);
    const Entry entry{end, flow};
    if (!places_[flow].held) {
      places_[flow] = {true, static_cast<uint32_t>(heap_.size())};
      heap_.push_back(entry);
    }
    sink(rise(places_[flow].number, entry), entry);
  }

  void pop() { remove(top()); }

  // Nothing happens if it is not held.
  void remove(FlowId flow) {
    if (!places_.contains(flow) || !places_[flow].held) return;
    const uint32_t place = places_[flow].number;
    places_[flow] = {};
    const Entry last = heap_.back();
    heap_.pop_back();
    if (place < heap_.size()) sink(rise(place, last), last);
  }

 private:
  struct Entry {
    Time end;
    FlowId flow;
  };

  struct Place {
    uint32_t held : 1 = false;
    uint32_t number : 31 = 0;
  };

  void set(uint32_t place, const Entry& entry) {
    heap_[place] = entry;
    places_[entry.flow].number = place;
  }

  // Moves entries that end later down, until this one could stand where it gives.
  uint32_t rise(uint32_t place, const Entry& entry) {
    while (place > 0) {
      const uint32_t parent = (place - 1) / 2;
      if (heap_[parent].end <= entry.end) break;
      set(place, heap_[parent]);
      place = parent;
    }
    return place;
  }

  // Moves entries that end earlier up, and puts this one where it belongs.
  void sink(uint32_t place, const Entry& entry) {
    for (;;) {
      size_t child = 2 * size_t{place} + 1;
      if (child >= heap_.size()) break;
      if (child + 1 < heap_.size() && heap_[child + 1].end < heap_[child].end) ++child;
      if (entry.end <= heap_[child].end) break;
      set(place, heap_[child]);
      place = static_cast<uint32_t>(child);
    }
    set(place, entry);
  }

  std::vector<Entry> heap_;
  Table<FlowId, Place> places_;
};

}  // namespace phantora::netsim
