// The known ranges against a plain array of states, and the queue against the order that it promises, on random
// programs.
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "check.h"
#include "known_ranges.h"
#include "state_map.h"
#include "value_queue.h"

using namespace phantora;
using values::KnownRanges;
using values::State;
using values::ValueQueue;

namespace {

using Random = std::mt19937;

int up_to(Random& random, int most) { return std::uniform_int_distribution<int>(0, most)(random); }

void check_ranges(Random& random) {
  constexpr int bytes = 120;
  std::array<State, bytes> model;
  model.fill(State::unknown);
  KnownRanges ranges;
  for (int step = 0; step < 400; ++step) {
    int begin = up_to(random, bytes), end = begin + up_to(random, bytes - begin);
    auto state = static_cast<State>(up_to(random, 2));
    ranges.assign(begin, end, state);
    std::fill(model.begin() + begin, model.begin() + end, state);

    int from = up_to(random, bytes), to = from + up_to(random, bytes - from), at = from;
    State worst = State::known, previous = State::known;
    ranges.for_each(from, to, [&](uintptr_t first, uintptr_t last, State seen) {
      CHECK_EQUAL(static_cast<int>(first), at);
      CHECK(first < last);
      CHECK(at == from || seen != previous);
      for (; at < static_cast<int>(last); ++at) CHECK(model[at] == seen);
      previous = seen;
    });
    CHECK_EQUAL(at, to);
    for (int i = from; i < to; ++i) worst = std::max(worst, model[i]);
    CHECK(ranges.worst(from, to) == worst);
  }
  size_t stretches = 0;
  for (int i = 0; i < bytes; ++i) stretches += model[i] != State::unknown && (i == 0 || model[i - 1] != model[i]);
  CHECK_EQUAL(ranges.size(), stretches);  // neighbours of one state are one range
}

// A piece that lies at two addresses among memory of its own states: both addresses show every assignment.
void check_shared(Random& random) {
  constexpr int bytes = 120, one = 20, other = 70, shared = 30;
  std::array<State, bytes> model;
  std::array<uint8_t, shared> states{};
  model.fill(State::unknown);
  values::StateMap map;
  map.assign(one + 5, one + 10, State::known);
  std::fill(model.begin() + one + 5, model.begin() + one + 10, State::known);
  std::copy_n(model.begin() + one, shared, model.begin() + other);
  map.share(one, one + shared, states.data());
  map.share(other, other + shared, states.data());
  for (int step = 0; step < 400; ++step) {
    int begin = up_to(random, bytes), end = begin + up_to(random, bytes - begin);
    auto state = static_cast<State>(up_to(random, 2));
    map.assign(begin, end, state);
    for (int i = begin; i < end; ++i) {
      model[i] = state;
      if (i >= one && i < one + shared) model[i - one + other] = state;
      if (i >= other && i < other + shared) model[i - other + one] = state;
    }
    int at = 0;
    map.for_each(0, bytes, [&](uintptr_t first, uintptr_t last, State seen) {
      CHECK_EQUAL(static_cast<int>(first), at);
      for (; at < static_cast<int>(last); ++at) CHECK(model[at] == seen);
    });
    CHECK_EQUAL(at, bytes);
    CHECK(map.worst(begin, end) == (begin < end ? state : State::known));
  }
  map.unshare(one, one + shared);
  CHECK(map.worst(one, one + 1) == State::unknown);
}

struct FakeExchange : values::Exchange {
  bool arrived = false, has_started = false;
  std::function<void()> on_start, on_apply;

  void start() override {
    CHECK(!has_started);
    has_started = true;
    on_start();
  }
  bool ready() override { return arrived; }
  void apply() override {
    CHECK(has_started);
    on_apply();
  }
};

// A random program, with what must have run before each item: all before it on its stream, and all that a recording
// which it waits for has behind it.
class QueueModel {
 public:
  explicit QueueModel(Random& random) : random_(random), latest_(streams) {}

  void run() {
    for (int step = 0; step < 300; ++step) {
      switch (up_to(random_, 5)) {
        case 0:
          submit_exchange(up_to(random_, streams - 1));
          break;
        case 1:
          record(up_to(random_, streams - 1));
          break;
        case 2:
          wait(up_to(random_, streams - 1));
          break;
        case 3:
          arrive();
          break;
        default:
          submit_task(up_to(random_, streams - 1));
      }
      check();
    }
    while (!pending_.empty()) arrive();
    check();
    CHECK_EQUAL(done_.size(), before_.size());
    CHECK(queue_.idle());
  }

 private:
  static constexpr int streams = 4;
  using Items = std::set<int>;

  int next(int stream) {
    int item = static_cast<int>(before_.size());
    before_.push_back(latest_[stream]);
    latest_[stream].insert(item);
    return item;
  }

  void ran(int item) {
    for (int earlier : before_[item]) CHECK(done_.contains(earlier));
    CHECK(done_.insert(item).second);
  }

  void submit_task(int stream) {
    int item = next(stream);
    queue_.submit(stream, [this, item] { ran(item); });
  }

  void submit_exchange(int stream) {
    int item = next(stream);
    auto exchange = std::make_shared<FakeExchange>();
    exchange->arrived = up_to(random_, 3) == 0;
    exchange->on_start = [this, item] {
      for (int earlier : before_[item]) CHECK(done_.contains(earlier));
    };
    exchange->on_apply = [this, item] { ran(item); };
    if (!exchange->arrived) {
      stalled_.insert(item);
      pending_.emplace_back(item, exchange);
    }
    queue_.submit(stream, exchange);
  }

  void record(int stream) {
    recordings_.push_back(latest_[stream]);
    queue_.record(stream, recordings_.size());
  }

  void wait(int stream) {
    if (recordings_.empty()) return;
    int which = up_to(random_, static_cast<int>(recordings_.size()) - 1);
    latest_[stream].insert(recordings_[which].begin(), recordings_[which].end());
    queue_.wait(stream, which + 1);
  }

  void arrive() {
    if (pending_.empty()) return;
    size_t which = up_to(random_, static_cast<int>(pending_.size()) - 1);
    pending_[which].second->arrived = true;
    stalled_.erase(pending_[which].first);
    pending_.erase(pending_.begin() + which);
    queue_.run();
  }

  // Nothing stands still that could run.
  void check() {
    for (int item = 0; item < static_cast<int>(before_.size()); ++item) {
      bool free = !stalled_.contains(item);
      for (int earlier : before_[item]) free = free && done_.contains(earlier);
      if (free) CHECK(done_.contains(item));
    }
  }

  Random& random_;
  ValueQueue queue_;
  std::vector<Items> before_;
  std::vector<Items> latest_;
  std::vector<Items> recordings_;
  std::vector<std::pair<int, std::shared_ptr<FakeExchange>>> pending_;
  Items stalled_;
  Items done_;
};

void check_tasks_that_submit() {
  ValueQueue queue;
  std::vector<int> order;
  auto exchange = std::make_shared<FakeExchange>();
  exchange->on_start = [] {};
  exchange->on_apply = [] {};
  queue.submit(0, exchange);
  queue.submit(0, [&] {
    order.push_back(1);
    queue.submit(0, [&] { order.push_back(3); });
    queue.submit(1, [&] { order.push_back(2); });
  });
  CHECK(order.empty());
  exchange->arrived = true;
  queue.run();
  CHECK((order == std::vector<int>{1, 2, 3}));
}

}  // namespace

int main() {
  for (unsigned seed = 0; seed < 200; ++seed) {
    Random random(seed);
    check_ranges(random);
    check_shared(random);
    QueueModel(random).run();
  }
  check_tasks_that_submit();
  return checks_failed();
}
