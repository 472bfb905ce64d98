#include "value_queue.h"

#include <utility>
#include <vector>

namespace phantora::values {

void ValueQueue::submit(StreamId stream, Task task) {
  if (idle(stream)) return task();
  streams_[stream].emplace_back(std::move(task));
}

void ValueQueue::submit(StreamId stream, std::shared_ptr<Exchange> exchange) {
  bool first = idle(stream);
  streams_[stream].emplace_back(Started{std::move(exchange)});
  if (first) run();
}

void ValueQueue::record(StreamId stream, RecordingId recording) {
  if (idle(stream)) return;
  streams_[stream].emplace_back(Recording{recording});
  recordings_.insert(recording);
}

void ValueQueue::wait(StreamId stream, RecordingId recording) {
  if (!pending(recording)) return;
  streams_[stream].emplace_back(Wait{recording});
}

bool ValueQueue::step(Item& item) {
  if (auto* task = std::get_if<Task>(&item)) {
    (*task)();
    return true;
  }
  if (auto* wait = std::get_if<Wait>(&item)) return !pending(wait->id);
  if (auto* recording = std::get_if<Recording>(&item)) {
    recordings_.erase(recording->id);
    return true;
  }
  auto& started = std::get<Started>(item);
  if (!std::exchange(started.started, true)) started.exchange->start();
  if (!started.exchange->ready()) return false;
  started.exchange->apply();
  return true;
}

// Items stay at the head of their queue while they run, so that what they submit comes behind them. References into a
// deque outlive appending to it; references into the map outlive insertions.
bool ValueQueue::advance(StreamId stream) {
  Items& items = streams_.at(stream);
  bool moved = false;
  while (!items.empty() && step(items.front())) {
    items.pop_front();
    moved = true;
  }
  if (items.empty()) streams_.erase(stream);
  return moved;
}

void ValueQueue::run() {
  again_ = true;
  if (std::exchange(running_, true)) return;
  while (std::exchange(again_, false)) {
    std::vector<StreamId> queued;
    for (const auto& [stream, items] : streams_) queued.push_back(stream);
    for (StreamId stream : queued) {
      if (advance(stream)) again_ = true;
    }
  }
  running_ = false;
}

}  // namespace phantora::values
