// The recorder's state, behind the functions of phantora/recorder.h.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lane.h"
#include "outbox.h"
#include "phantora/recorder.h"
#include "progress.h"
#include "sink.h"

namespace phantora {

class Recorder {
 public:
  static Recorder& instance();

  bool active() const;
  bool has_ended() const;
  void release_observers(StreamId stream);
  uint64_t waits();

  int64_t now_ns();
  void advance(int64_t ns);
  void charge_call();
  void sleep(int64_t ns);

  void record(wire::RecordKind kind, StreamId stream, uint64_t a, uint64_t b, uint8_t flags);
  void define(std::string_view packed);
  void define_stream(StreamId stream, int device, int priority);
  void forget(RecordingId recording);
  RecordingId next_recording();
  uint32_t next_definition_id(std::string_view table);
  void flush();

  int64_t sync(wire::Target target, StreamId stream, RecordingId recording);
  bool query(wire::Target target, StreamId stream, RecordingId recording);
  int64_t event_time(RecordingId recording);
  std::vector<int64_t> event_times(const std::vector<RecordingId>& recordings);
  uint64_t begin_host_sync(uint32_t host_group);
  int64_t end_host_sync(uint64_t request);

  void send_data(std::string_view payload);
  void on_data(std::function<void(std::string_view)> handler);
  void farewell(std::function<void(std::function<void(std::string_view, std::string_view)>)> contribute);

  void go_outside(std::string_view what);

  void declare_guess(const std::string& what);

  void end_lane(Lane& lane);

 private:
  using Lock = std::unique_lock<std::mutex>;

  // A request on its way.
  struct Pending {
    Lane* lane;
    wire::RecordKind kind;
    std::vector<Progress::Point> covers;  // complete when a wait ends, or a query says yes
    RecordingId recording;
    bool blocking;
    bool answered = false;
    int64_t value = 0;
  };

  Recorder();

  // Fork: the child is no rank. Its clock goes on with real time from where the parent's was.
  static void before_fork();
  static void after_fork_in_parent();
  static void after_fork_in_child();
  void become_inert();

  void connect(Lock& lock);
  Listener listener();
  void say_hello();
  void say_goodbye();
  std::string packed_guesses();
  void flush(Lock& lock);
  void run_flusher();
  void report_clocks();
  void wake_flusher_if_behind(const Lane& lane);

  Lane& lane_of(ThreadState& thread);
  Lane& open_lane(Lock& lock, ThreadState& thread);
  void begin_side_lane(Lane& lane);
  uint16_t take_lane_id();
  void close_lane(Lane& lane);
  void settle(ThreadState& thread, Lane& lane);
  void append(Lane& lane, wire::RecordKind kind, StreamId stream, uint64_t a, uint64_t b, uint8_t flags);
  void note(const Lane& lane, wire::RecordKind kind, StreamId stream, uint64_t a);

  int64_t ask(Lock& lock, ThreadState& thread, wire::RecordKind kind, wire::Target target, StreamId stream, uint64_t a);
  uint64_t pose(Lock& lock, ThreadState& thread, wire::RecordKind kind, wire::Target target, StreamId stream,
                uint64_t a);
  int64_t await(Lock& lock, ThreadState& thread, uint64_t request);
  std::vector<Progress::Point> points(wire::Target target, StreamId stream, RecordingId recording);
  bool is_done(const Lane& lane, wire::Target target, StreamId stream, RecordingId recording) const;
  bool is_done_for_observers(wire::Target target, StreamId stream, RecordingId recording);
  int64_t return_from_wait(Lane& lane);
  bool is_spinning(Lane& lane, wire::Target target, StreamId stream, RecordingId recording);
  void on_reply(uint64_t request, int64_t value, bool speculated);
  void on_correction(uint64_t request, int64_t value);
  void rebase(uint64_t request, int64_t value);

  std::mutex mutex_;
  std::condition_variable replied_;
  std::condition_variable lane_free_;
  std::condition_variable flusher_wake_;

  std::atomic<bool> inert_ = false;
  std::atomic<bool> ended_ = false;
  int64_t inert_virtual_ns_ = 0;
  int64_t inert_real_ns_ = 0;

  Lane main_lane_;
  std::vector<Lane*> open_lanes_;
  uint16_t last_lane_id_ = 0;

  Outbox outbox_;
  bool flush_wanted_ = false;
  std::mutex send_mutex_;  // taken before mutex_; what is taken from the outbox is sent in that order
  std::unique_ptr<Sink> sink_;

  Progress progress_;
  uint64_t waits_ = 0;
  std::unordered_map<uint64_t, Pending> pending_;
  uint64_t last_request_ = 0;
  RecordingId last_recording_ = 0;
  std::map<std::string, uint32_t, std::less<>> definition_ids_;

  std::set<std::string> guesses_;
  std::function<void(std::string_view)> data_handler_;
  std::vector<std::function<void(std::function<void(std::string_view, std::string_view)>)>> farewells_;
};

}  // namespace phantora
