// Lanes, records and requests. recorder_life.cpp has the connection, recorder_api.cpp the public functions.
#include <pthread.h>

#include <algorithm>

#include "phantora/config.h"
#include "phantora/counters.h"
#include "real_clock.h"
#include "recorder_core.h"

namespace phantora {

namespace {

using wire::RecordKind;
using wire::Target;

constexpr size_t flush_bytes = 64 << 10;  // a fuller outbox is sent at once
// A clock that is further ahead of its last record is reported by itself.
constexpr int64_t unreported_limit_ns = 100'000;
constexpr int spinning_after = 3;

}  // namespace

// --- lanes

Lane& Recorder::lane_of(ThreadState& thread) {
  if (thread.role != Role::side) return main_lane_;
  if (!thread.own) {
    thread.own = std::make_unique<Lane>();
    thread.own->base_ns = main_lane_.now_ns();
  }
  return *thread.own;
}

// The lane, ready for a record of the calling thread.
Lane& Recorder::open_lane(Lock& lock, ThreadState& thread) {
  connect(lock);
  Lane& lane = lane_of(thread);
  lane_free_.wait(lock, [&] { return !lane.blocked; });
  settle(thread, lane);
  if (!lane.open) begin_side_lane(lane);
  return lane;
}

// A side thread's lane is open from a record to the end of its next wait: while the thread waits for work it must not
// hold the simulation back. It begins on lane 0, at that lane's time.
void Recorder::begin_side_lane(Lane& lane) {
  lane.id = take_lane_id();
  char name[16] = "";
  pthread_getname_np(pthread_self(), name, sizeof name);
  outbox_.add(wire::FrameType::define,
              wire::Pack().map(3).text("t").text("lane").text("id").integer(lane.id).text("name").text(name).str());
  int64_t now_ns = std::max(lane.now_ns(), main_lane_.now_ns());
  if (main_lane_.blocking_request != 0) {
    // In the order of records this comes after lane 0's wait: the new lane begins when that ends, whenever it will be.
    outbox_.add({RecordKind::lane_begin, 0, main_lane_.id, 0, 0, lane.id, 0});
    now_ns = main_lane_.now_ns();
  } else {
    append(main_lane_, RecordKind::lane_begin, 0, lane.id, 0, 0);
  }
  lane.base_ns = main_lane_.now_ns();
  lane.base_request = main_lane_.blocking_request;
  lane.delta_ns = now_ns - lane.base_ns;
  lane.reported_ns = 0;
  lane.open = true;
  open_lanes_.push_back(&lane);
}

// Ids come round again after 65,535 lanes; those still open are skipped.
uint16_t Recorder::take_lane_id() {
  auto taken = [this](uint16_t id) {
    return std::any_of(open_lanes_.begin(), open_lanes_.end(), [id](const Lane* lane) { return lane->id == id; });
  };
  do {
    ++last_lane_id_;
  } while (taken(last_lane_id_));
  return last_lane_id_;
}

void Recorder::close_lane(Lane& lane) {
  append(lane, RecordKind::lane_end, 0, 0, 0, 0);
  std::erase(open_lanes_, &lane);
  lane.open = false;
}

void Recorder::end_lane(Lane& lane) {
  Lock lock(mutex_);
  if (!inert_ && lane.open) close_lane(lane);
}

// HostPolicy::measured: the CPU time that the thread has used since its last call belongs to its lane.
void Recorder::settle(ThreadState& thread, Lane& lane) {
  if (config().host_policy != HostPolicy::measured || thread.role == Role::observer) return;
  int64_t cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  if (thread.cpu_mark_ns != 0) lane.delta_ns += cpu_ns - thread.cpu_mark_ns;
  thread.cpu_mark_ns = cpu_ns;
}

int64_t Recorder::now_ns() {
  ThreadState& thread = this_thread();
  Lock lock(mutex_);
  if (inert_) return inert_virtual_ns_ + clock_ns(CLOCK_MONOTONIC) - inert_real_ns_;
  Lane& lane = lane_of(thread);
  settle(thread, lane);
  if (thread.role == Role::observer) return lane.now_ns();
  lane.shown_ns = std::max(lane.shown_ns, lane.now_ns());
  return lane.shown_ns;
}

void Recorder::advance(int64_t ns) {
  if (inert_ || config().host_policy != HostPolicy::modelled) return;
  ThreadState& thread = this_thread();
  if (thread.role == Role::observer) return;
  Lock lock(mutex_);
  Lane& lane = lane_of(thread);
  lane.delta_ns += ns;
  lane.asked = 0;
  wake_flusher_if_behind(lane);
}

void Recorder::charge_call() {
  if (inert_ || config().host_policy != HostPolicy::modelled) return;
  ThreadState& thread = this_thread();
  if (thread.role == Role::observer) return;
  Lock lock(mutex_);
  lane_of(thread).delta_ns += config().call_ns;
}

void Recorder::sleep(int64_t ns) {
  if (inert_ || ns <= 0) return;
  ThreadState& thread = this_thread();
  if (thread.role == Role::observer) return;
  Lock lock(mutex_);
  Lane& lane = lane_of(thread);
  lane.delta_ns += ns;
  wake_flusher_if_behind(lane);
}

void Recorder::wake_flusher_if_behind(const Lane& lane) {
  if (flush_wanted_ || !sink_ || !lane.open || lane.delta_ns - lane.reported_ns < unreported_limit_ns) return;
  flush_wanted_ = true;
  flusher_wake_.notify_one();
}

// --- records

void Recorder::append(Lane& lane, RecordKind kind, StreamId stream, uint64_t a, uint64_t b, uint8_t flags) {
  lane.reported_ns = lane.delta_ns;
  outbox_.add({kind, flags, lane.id, stream, static_cast<uint64_t>(lane.delta_ns), a, b});
  counters::records.add();
  if (!flush_wanted_) {
    flush_wanted_ = true;
    flusher_wake_.notify_one();
  }
}

void Recorder::note(const Lane& lane, RecordKind kind, StreamId stream, uint64_t a) {
  switch (kind) {
    case RecordKind::kernel:
    case RecordKind::collective:
      return progress_.issued(stream);
    case RecordKind::event_record:
      return progress_.recorded(stream, a, lane.now_ns());
    case RecordKind::stream_wait:
      return progress_.waited(stream, a);
    default:
      return;
  }
}

void Recorder::record(RecordKind kind, StreamId stream, uint64_t a, uint64_t b, uint8_t flags) {
  if (inert_) return;
  ThreadState& thread = this_thread();
  if (thread.role == Role::observer) return;
  Lock lock(mutex_);
  Lane& lane = open_lane(lock, thread);
  lane.asked = 0;
  append(lane, kind, stream, a, b, flags);
  note(lane, kind, stream, a);
  if (outbox_.size() > flush_bytes) flush(lock);
}

void Recorder::define(std::string_view packed) {
  if (inert_) return;
  Lock lock(mutex_);
  connect(lock);
  outbox_.add(wire::FrameType::define, packed);
}

void Recorder::define_stream(StreamId stream, int device, int priority) {
  if (inert_) return;
  wire::Pack pack;
  pack.map(4).text("t").text("stream").text("id").integer(stream);
  pack.text("device").integer(device).text("priority").integer(priority);
  Lock lock(mutex_);
  connect(lock);
  progress_.add_stream(stream, device);
  outbox_.add(wire::FrameType::define, pack.str());
}

RecordingId Recorder::next_recording() {
  Lock lock(mutex_);
  return ++last_recording_;
}

void Recorder::forget(RecordingId recording) {
  if (inert_ || recording == 0) return;
  record(RecordKind::event_forget, 0, recording, 0, 0);
  Lock lock(mutex_);
  progress_.forget(recording);
}

uint32_t Recorder::next_definition_id(std::string_view table) {
  Lock lock(mutex_);
  auto found = definition_ids_.find(table);
  if (found == definition_ids_.end()) found = definition_ids_.emplace(table, 0).first;
  return ++found->second;
}

// --- requests

std::vector<Progress::Point> Recorder::points(Target target, StreamId stream, RecordingId recording) {
  switch (target) {
    case Target::stream:
      return {progress_.stream_point(stream)};
    case Target::device:
      return progress_.device_points(static_cast<int>(stream));
    case Target::recording:
      break;
  }
  auto point = progress_.recording_point(recording);
  return point ? std::vector{*point} : std::vector<Progress::Point>{};
}

bool Recorder::is_done(const Lane& lane, Target target, StreamId stream, RecordingId recording) const {
  switch (target) {
    case Target::recording:
      return progress_.is_recording_done(recording, lane.now_ns());
    case Target::device:
      return progress_.is_device_done(static_cast<int>(stream));
    case Target::stream:
      break;
  }
  return progress_.is_stream_done(stream);
}

// Sends the record and waits for its reply; a blocking record moves the lane.
int64_t Recorder::ask(Lock& lock, ThreadState& thread, RecordKind kind, Target target, StreamId stream, uint64_t a) {
  return await(lock, thread, pose(lock, thread, kind, target, stream, a));
}

// From here until the reply has been awaited the lane takes no further record.
uint64_t Recorder::pose(Lock& lock, ThreadState& thread, RecordKind kind, Target target, StreamId stream, uint64_t a) {
  Lane& lane = open_lane(lock, thread);
  uint64_t request = ++last_request_;
  counters::requests.add();
  bool covers_work = kind == RecordKind::sync || kind == RecordKind::query;
  append(lane, kind, stream, a, request, covers_work ? static_cast<uint8_t>(target) : uint8_t{0});
  RecordingId recording = target == Target::recording ? a : 0;
  bool blocking = kind == RecordKind::sync || kind == RecordKind::host_sync;
  pending_[request] = {&lane, kind, covers_work ? points(target, stream, recording) : std::vector<Progress::Point>{},
                       recording, blocking};
  lane.blocked = true;
  lane.blocking_request = blocking ? request : 0;
  Question question{request, kind, lane.now_ns(), progress_.issue_time(recording)};

  lock.unlock();
  {
    std::lock_guard sending(send_mutex_);
    lock.lock();
    std::string frames = outbox_.take();
    lock.unlock();
    sink_->ask(frames, question);
  }
  lock.lock();
  return request;
}

int64_t Recorder::await(Lock& lock, ThreadState& thread, uint64_t request) {
  replied_.wait(lock, [&] { return pending_.at(request).answered; });
  const Pending reply = pending_.at(request);
  pending_.erase(request);

  if (config().host_policy == HostPolicy::measured) thread.cpu_mark_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  Lane& lane = *reply.lane;
  lane.blocked = false;
  lane_free_.notify_all();
  if (reply.blocking && lane.id != 0) close_lane(lane);
  if (reply.blocking && config().host_policy == HostPolicy::modelled) lane.delta_ns += config().sync_ns;
  return reply.value;
}

// Applied here, not by the thread that waits, so that a correction cannot overtake its reply.
void Recorder::on_reply(uint64_t request, int64_t value, bool speculated) {
  Lock lock(mutex_);
  auto found = pending_.find(request);
  if (found == pending_.end() || found->second.answered) {
    fail("the simulator answered request " + std::to_string(request) + ", which is not open",
         "report this as an error of phantora");
  }
  Pending& pending = found->second;
  pending.answered = true;
  pending.value = value;
  bool on_main = pending.lane == &main_lane_;
  if (pending.lane->blocking_request == request) {
    pending.lane->base_request = request;
    pending.lane->blocking_request = 0;
    pending.lane->delta_ns = pending.lane->reported_ns = 0;
    rebase(request, value);
  }
  // Only what lane 0 has seen complete is complete at lane 0's clock.
  if (on_main && pending.kind == RecordKind::sync) {
    for (Progress::Point point : pending.covers) progress_.done(point);
  }
  if (on_main && pending.kind == RecordKind::query && value != 0 && !speculated) {
    for (Progress::Point point : pending.covers) progress_.told(point);
  }
  if (pending.kind == RecordKind::event_time && !speculated) progress_.set_time(pending.recording, value);
  replied_.notify_all();
}

void Recorder::on_correction(uint64_t request, int64_t value) {
  Lock lock(mutex_);
  counters::corrections.add();
  rebase(request, value);
}

// Lanes whose time counts from the end of that request: the one that asked, and those begun while it waited.
void Recorder::rebase(uint64_t request, int64_t value) {
  for (Lane* lane : open_lanes_) {
    if (lane->base_request == request) lane->base_ns = value;
  }
}

int64_t Recorder::sync(Target target, StreamId stream, RecordingId recording) {
  ThreadState& thread = this_thread();
  if (inert_ || thread.role == Role::observer) return now_ns();
  Lock lock(mutex_);
  Lane& lane = lane_of(thread);
  lane.asked = 0;
  if (thread.role == Role::main) ++waits_;
  if (thread.role == Role::main && is_done(lane, target, stream, recording)) {
    for (Progress::Point point : points(target, stream, recording)) progress_.done(point);
    return return_from_wait(lane);
  }
  return ask(lock, thread, RecordKind::sync, target, stream, recording);
}

// Observers ask in real time, so they see only what follows from the rank's own calls.
bool Recorder::is_done_for_observers(Target target, StreamId stream, RecordingId recording) {
  std::vector<Progress::Point> asked = points(target, stream, recording);
  return std::all_of(asked.begin(), asked.end(),
                     [this](Progress::Point point) { return progress_.was_waited_for(point); });
}

void Recorder::release_observers(StreamId stream) {
  Lock lock(mutex_);
  progress_.release(progress_.stream_point(stream));
}

uint64_t Recorder::waits() {
  Lock lock(mutex_);
  return waits_;
}

// A wait for what is known to be complete takes no time but the call's own.
int64_t Recorder::return_from_wait(Lane& lane) {
  counters::local_answers.add();
  if (config().host_policy == HostPolicy::modelled) lane.delta_ns += config().sync_ns;
  return lane.now_ns();
}

bool Recorder::is_spinning(Lane& lane, Target target, StreamId stream, RecordingId recording) {
  uint64_t question = target == Target::recording ? recording << 1 : uint64_t{stream} << 1 | 1;
  question += 1;  // 0 is no question
  lane.asked_times = lane.asked == question ? lane.asked_times + 1 : 1;
  lane.asked = question;
  return lane.asked_times >= spinning_after;
}

bool Recorder::query(Target target, StreamId stream, RecordingId recording) {
  ThreadState& thread = this_thread();
  if (inert_) return true;
  Lock lock(mutex_);
  if (thread.role == Role::observer) return is_done_for_observers(target, stream, recording);
  Lane& lane = lane_of(thread);
  bool knows = thread.role != Role::side;  // what lane 0 knows holds at lane 0's clock
  if (knows && is_done(lane, target, stream, recording)) {
    counters::local_answers.add();
    return true;
  }
  if (is_spinning(lane, target, stream, recording)) {
    counters::spins.add();
    if (thread.role == Role::main) ++waits_;
    ask(lock, thread, RecordKind::sync, target, stream, recording);
    lane.asked = 0;
    return true;
  }
  return ask(lock, thread, RecordKind::query, target, stream, recording) != 0;
}

int64_t Recorder::event_time(RecordingId recording) {
  ThreadState& thread = this_thread();
  if (inert_) return 0;
  Lock lock(mutex_);
  if (auto known = progress_.time(recording)) return *known;
  if (thread.role == Role::observer) return progress_.issue_time(recording);
  return ask(lock, thread, RecordKind::event_time, Target::recording, 0, recording);
}

// As many requests as there are times that are not known yet, sent together.
std::vector<int64_t> Recorder::event_times(const std::vector<RecordingId>& recordings) {
  std::vector<int64_t> times_ns;
  ThreadState& thread = this_thread();
  if (inert_ || thread.role == Role::observer) {
    for (RecordingId recording : recordings) times_ns.push_back(event_time(recording));
    return times_ns;
  }
  Lock lock(mutex_);
  Lane& lane = open_lane(lock, thread);
  std::vector<Question> questions;
  for (RecordingId recording : recordings) {
    if (progress_.time(recording)) continue;
    uint64_t request = ++last_request_;
    counters::requests.add();
    append(lane, RecordKind::event_time, 0, recording, request, 0);
    pending_[request] = {&lane, RecordKind::event_time, {}, recording, false};
    questions.push_back({request, RecordKind::event_time, lane.now_ns(), progress_.issue_time(recording)});
  }
  lane.blocked = true;
  lane.blocking_request = 0;
  lock.unlock();
  {
    std::lock_guard sending(send_mutex_);
    lock.lock();
    std::string frames = outbox_.take();
    lock.unlock();
    sink_->send(frames);
    for (const Question& question : questions) sink_->ask({}, question);
  }
  lock.lock();
  std::map<RecordingId, int64_t> asked_ns;
  for (const Question& question : questions) {
    replied_.wait(lock, [&] { return pending_.at(question.request).answered; });
    const Pending& pending = pending_.at(question.request);
    asked_ns[pending.recording] = pending.value;
    pending_.erase(question.request);
  }
  lane.blocked = false;
  lane_free_.notify_all();
  for (RecordingId recording : recordings) {
    auto asked = asked_ns.find(recording);
    times_ns.push_back(asked != asked_ns.end() ? asked->second : *progress_.time(recording));
  }
  return times_ns;
}

// 0: this thread's waits are not the job's.
uint64_t Recorder::begin_host_sync(uint32_t host_group) {
  ThreadState& thread = this_thread();
  if (inert_ || thread.role == Role::observer) return 0;
  Lock lock(mutex_);
  return pose(lock, thread, RecordKind::host_sync, Target::stream, 0, host_group);
}

int64_t Recorder::end_host_sync(uint64_t request) {
  if (request == 0) return now_ns();
  Lock lock(mutex_);
  return await(lock, this_thread(), request);
}

// --- data and farewell

void Recorder::send_data(std::string_view payload) {
  if (inert_) return;
  Lock lock(mutex_);
  connect(lock);
  outbox_.add(wire::FrameType::data, payload);
  if (this_thread().role != Role::observer) return flush(lock);
  // The thread that reads from the simulator must not wait for it to read from us.
  flush_wanted_ = true;
  flusher_wake_.notify_one();
}

void Recorder::on_data(std::function<void(std::string_view)> handler) {
  Lock lock(mutex_);
  data_handler_ = std::move(handler);
}

void Recorder::farewell(std::function<void(std::function<void(std::string_view, std::string_view)>)> contribute) {
  Lock lock(mutex_);
  farewells_.push_back(std::move(contribute));
}

}  // namespace phantora
