// The order in which values are computed: one queue a stream, run lazily.
#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <variant>

#include "phantora/values.h"

namespace phantora::values {

// Work runs as soon as nothing stands before it. Only an exchange whose bytes have not come stands still by itself;
// what is behind it on its stream, and on streams that wait for that one, queues. Not thread-safe: values.cpp holds the
// lock.
class ValueQueue {
 public:
  bool idle(StreamId stream) const { return streams_.empty() || !streams_.contains(stream); }
  bool idle() const { return streams_.empty(); }
  bool pending(RecordingId recording) const { return recordings_.contains(recording); }

  void submit(StreamId stream, Task task);
  void submit(StreamId stream, std::shared_ptr<Exchange> exchange);
  void record(StreamId stream, RecordingId recording);
  void wait(StreamId stream, RecordingId recording);

  // Runs all that can run. A call from within a task only notes that there may be more.
  void run();

 private:
  struct Recording {
    RecordingId id;
  };
  struct Wait {
    RecordingId id;
  };
  struct Started {
    std::shared_ptr<Exchange> exchange;
    bool started = false;
  };
  using Item = std::variant<Task, Started, Recording, Wait>;
  using Items = std::deque<Item>;

  bool step(Item& item);  // true when the item is done
  bool advance(StreamId stream);

  std::unordered_map<StreamId, Items> streams_;  // only those with something queued
  std::unordered_set<RecordingId> recordings_;   // queued, not reached yet
  bool running_ = false;
  bool again_ = false;
};

}  // namespace phantora::values
