// What has happened: kept until it is final, then handed over in a total order (end time, rank, order within the rank).
#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

#include "ids.h"
#include "program.h"
#include "sim_time.h"

namespace phantora::netsim {

struct Node {
  Time end;
  RankId rank;
  uint64_t sequence;  // the rank's count of executed records
  Time issue;
  Time start;
  int32_t device;
  StreamId stream;
  uint32_t definition;
  Kind kind;
  bool later;
};

// A MARK or MEMORY record.
struct Mark {
  Time time;
  RankId rank;
  uint64_t sequence;
  int32_t device;
  Kind kind;
  uint64_t a;
  uint64_t b;
};

// An answer to a request.
struct Answer {
  RankId rank;
  uint64_t request;
  int64_t value;
  Time at;  // the lane's time when it goes on with this answer
};

class Timeline {
 public:
  void add(const Node& node) {
    last_ = std::max(last_, node.end);
    nodes_.push_back(node);
  }
  void add(const Mark& mark) {
    last_ = std::max(last_, mark.time);
    marks_.push_back(mark);
  }

  // What is before `frontier`; nothing can be added there any more.
  std::vector<Node> take_nodes(Time frontier) {
    return take(nodes_, frontier, [](const Node& node) { return node.end; });
  }
  std::vector<Mark> take_marks(Time frontier) {
    return take(marks_, frontier, [](const Mark& mark) { return mark.time; });
  }

  Time last() const { return last_; }

 private:
  template <class T, class TimeOf>
  static std::vector<T> take(std::vector<T>& items, Time frontier, TimeOf time_of) {
    const auto later =
        std::partition(items.begin(), items.end(), [&](const T& item) { return time_of(item) < frontier; });
    std::vector<T> taken(items.begin(), later);
    items.erase(items.begin(), later);
    std::sort(taken.begin(), taken.end(), [&](const T& x, const T& y) {
      return std::tuple(time_of(x), x.rank, x.sequence) < std::tuple(time_of(y), y.rank, y.sequence);
    });
    return taken;
  }

  std::vector<Node> nodes_;
  std::vector<Mark> marks_;
  Time last_ = 0;
};

}  // namespace phantora::netsim
