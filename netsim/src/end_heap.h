// Flows by the time at which they end; each flow knows its place, so that its end can change.
#pragma once

#include <cstdint>
#include <vector>

#include "flow.h"

namespace phantora::netsim {

class EndHeap {
 public:
  bool empty() const { return heap_.empty(); }
  FlowId top() const { return heap_.front(); }

  // Puts the flow where its `end` belongs; it may be new.
  void place(Slab<FlowId, Flow>& flows, FlowId id) {
    if (flows[id].heap_place == Flow::kNotInHeap) {
      flows[id].heap_place = static_cast<uint32_t>(heap_.size());
      heap_.push_back(id);
    }
    rise(flows, flows[id].heap_place);
    sink(flows, flows[id].heap_place);
  }

  void pop(Slab<FlowId, Flow>& flows) {
    flows[heap_.front()].heap_place = Flow::kNotInHeap;
    const FlowId last = heap_.back();
    heap_.pop_back();
    if (heap_.empty()) return;
    set(flows, 0, last);
    sink(flows, 0);
  }

 private:
  void set(Slab<FlowId, Flow>& flows, uint32_t place, FlowId id) {
    heap_[place] = id;
    flows[id].heap_place = place;
  }

  void rise(Slab<FlowId, Flow>& flows, uint32_t place) {
    const FlowId id = heap_[place];
    while (place > 0) {
      const uint32_t parent = (place - 1) / 2;
      if (flows[heap_[parent]].end <= flows[id].end) break;
      set(flows, place, heap_[parent]);
      place = parent;
    }
    set(flows, place, id);
  }

  void sink(Slab<FlowId, Flow>& flows, uint32_t place) {
    const FlowId id = heap_[place];
    for (;;) {
      size_t child = 2 * size_t{place} + 1;
      if (child >= heap_.size()) break;
      if (child + 1 < heap_.size() && flows[heap_[child + 1]].end < flows[heap_[child]].end) ++child;
      if (flows[id].end <= flows[heap_[child]].end) break;
      set(flows, place, heap_[child]);
      place = static_cast<uint32_t>(child);
    }
    set(flows, place, id);
  }

  std::vector<FlowId> heap_;
};

}  // namespace phantora::netsim
