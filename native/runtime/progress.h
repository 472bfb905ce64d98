// What the rank knows for certain to be complete, without asking: all that lane 0 has waited for or was told about.
//
// Each stream counts what is issued on it. "Done up to n" means that its first n items are complete at lane 0's clock.
// A recording stands for the items before it. If a stream is done up to n, so is everything that its first n items
// waited for on other streams.
//
// What lane 0 has waited for follows from its calls alone. What it was told depends on more: an answer that was only
// speculated is not noted. So the two are kept apart, for those who must not see the difference.
#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include "phantora/recorder.h"

namespace phantora {

class Progress {
 public:
  void add_stream(StreamId stream, int device);

  void issued(StreamId stream);
  void recorded(StreamId stream, RecordingId recording, int64_t now_ns);
  void waited(StreamId stream, RecordingId recording);
  void forget(RecordingId recording);

  // What a wait that begins now covers; done() when it has ended, told() when a query has found it complete.
  struct Point {
    StreamId stream;
    uint64_t items;
  };
  Point stream_point(StreamId stream);
  std::optional<Point> recording_point(RecordingId recording) const;
  std::vector<Point> device_points(int device) const;
  void done(Point point);
  void told(Point point);
  void release(Point point);  // lane 0 need not wait for it any more

  void set_time(RecordingId recording, int64_t time_ns);

  bool is_stream_done(StreamId stream) const;
  bool is_device_done(int device) const;
  bool is_recording_done(RecordingId recording, int64_t now_ns) const;
  bool was_waited_for(Point point) const;  // or released
  std::optional<int64_t> time(RecordingId recording) const;
  int64_t issue_time(RecordingId recording) const;

 private:
  struct Wait {
    uint64_t at;  // how many items the waiting stream had
    Point on;
  };
  struct Stream {
    int device = 0;
    uint64_t issued = 0;
    uint64_t done = 0;  // waited for
    uint64_t told = 0;
    uint64_t released = 0;
    bool knows(uint64_t items) const { return items <= done || items <= told; }
    std::deque<Wait> waits;
  };
  struct Recording {
    Point point;
    int64_t issue_ns;
    std::optional<int64_t> time_ns;
  };

  Stream& at(StreamId stream);
  const Stream* find(StreamId stream) const;

  std::vector<Stream> streams_;
  std::unordered_map<RecordingId, Recording> recordings_;
};

}  // namespace phantora
