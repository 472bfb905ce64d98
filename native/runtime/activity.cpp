#include "phantora/activity.h"

#include <pthread.h>
#include <x86intrin.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>

#include "phantora/config.h"
#include "phantora/streams.h"

namespace phantora::activity {

namespace {

struct Work {
  std::string name;
  std::string copy_kind;
  uint64_t copy_bytes = 0;
  bool copy_is_pageable = false;
  uint32_t grid[3] = {1, 1, 1};
  uint32_t block[3] = {1, 1, 1};
  Resources resources;
};

// On its way through a stream.
struct Pending {
  Done done;
  RecordingId begin = 0;
  RecordingId end = 0;
};

struct State {
  std::mutex mutex;
  uint32_t last_correlation = 0;
  std::vector<Made> calls;
  std::map<StreamId, std::deque<Pending>> pending;  // in stream order
  std::vector<ClockPoint> points;
  std::unordered_map<uint32_t, Work> works;  // by signature
  std::set<std::string, std::less<>> names;
};

State& state() {
  static State* instance = new State;  // never destroyed: used by exit handlers
  return *instance;
}

std::atomic<bool> on{false};

thread_local Call* innermost_call = nullptr;
thread_local std::map<int, std::vector<uint64_t>> external_stacks;

Externals externals() {
  Externals tops;
  for (const auto& [kind, stack] : external_stacks) {
    if (!stack.empty()) tops.emplace_back(kind, stack.back());
  }
  return tops;
}

// CUPTI names threads so.
uint32_t thread_number() { return static_cast<uint32_t>(pthread_self()); }

uint32_t next_correlation() {
  std::lock_guard lock(state().mutex);
  return ++state().last_correlation;
}

RecordingId mark(StreamId stream) {
  RecordingId recording = recorder::next_recording();
  recorder::record(wire::RecordKind::event_record, stream, recording);
  return recording;
}

void add_call(uint32_t correlation, Api api, const ClockPoint& start) {
  ClockPoint end = clock_point();
  Made made{correlation, api, thread_number(), start.time_ns, end.time_ns, externals()};
  std::lock_guard lock(state().mutex);
  state().calls.push_back(std::move(made));
  if (recorder::is_main()) state().points.insert(state().points.end(), {start, end});
}

// A launch costs the host its time before it is recorded.
ClockPoint start_of_launch() {
  ClockPoint now = clock_point();
  bool costs = config().host_policy == HostPolicy::modelled;
  return {now.counter, costs ? now.time_ns - config().launch_ns : now.time_ns};
}

Api api_of(const Done& done) {
  if (done.copy_kind.empty()) return Api::launch_kernel;
  return done.copy_kind == "memset" ? Api::memset_async : Api::memcpy_async;
}

// Under the lock.
void fill_in(Done& done, uint32_t signature) {
  const Work& work = state().works.at(signature);
  done.name = work.name.c_str();
  done.copy_kind = work.copy_kind;
  done.copy_bytes = work.copy_bytes;
  done.copy_is_pageable = work.copy_is_pageable;
  std::copy_n(work.grid, 3, done.grid);
  std::copy_n(work.block, 3, done.block);
  done.resources = work.resources;
}

// Moves what is complete from the front of a stream's pending work.
void take_complete(std::deque<Pending>& pending, std::vector<Pending>& complete) {
  bool all = !pending.empty() && recorder::query_recording(pending.back().end);
  while (!pending.empty() && (all || recorder::query_recording(pending.front().end))) {
    complete.push_back(std::move(pending.front()));
    pending.pop_front();
  }
}

std::vector<Done> with_times(std::vector<Pending> complete) {
  std::vector<RecordingId> recordings;
  for (const Pending& item : complete) recordings.insert(recordings.end(), {item.begin, item.end});
  std::vector<int64_t> times_ns = recorder::event_times(recordings);
  for (RecordingId recording : recordings) recorder::forget(recording);
  std::vector<Done> work;
  for (size_t i = 0; i < complete.size(); ++i) {
    Done& done = work.emplace_back(std::move(complete[i].done));
    done.start_ns = times_ns[2 * i];
    done.end_ns = times_ns[2 * i + 1];
  }
  return work;
}

}  // namespace

bool is_on() { return on.load(std::memory_order_relaxed); }

void start() {
  std::lock_guard lock(state().mutex);
  if (!on) state().points.clear();
  on = true;
}

void stop() { on = false; }

void push_external(int kind, uint64_t number) { external_stacks[kind].push_back(number); }

bool pop_external(int kind, uint64_t* number) {
  std::vector<uint64_t>& stack = external_stacks[kind];
  if (stack.empty()) return false;
  if (number) *number = stack.back();
  stack.pop_back();
  return true;
}

Call::Call(Api api) : api_(api) {
  if (!is_on() || recorder::is_observer()) return;
  start_ = clock_point();
  correlation_ = next_correlation();
  outer_ = std::exchange(innermost_call, this);
}

Call::~Call() {
  if (correlation_ == 0) return;
  innermost_call = outer_;
  add_call(correlation_, api_, start_);
}

Issue::Issue(StreamId stream, uint32_t signature) : stream_(stream), signature_(signature) {
  if (is_on() && !recorder::is_observer()) begin();
}

Issue::Issue(StreamId stream, std::string_view name) : stream_(stream) {
  if (!is_on() || recorder::is_observer()) return;
  name_ = name;
  begin();
}

void Issue::begin() {
  start_ = start_of_launch();
  begin_ = mark(stream_);
}

Issue::~Issue() {
  if (begin_ == 0) return;
  Pending item{{}, begin_, mark(stream_)};
  item.done.stream = stream_;
  item.done.device = streams::device_of(stream_);
  item.done.externals = externals();
  item.done.correlation = innermost_call ? innermost_call->correlation_ : next_correlation();
  {
    std::lock_guard lock(state().mutex);
    if (signature_ != 0) {
      fill_in(item.done, signature_);
    } else {
      item.done.name = state().names.insert(name_).first->c_str();
    }
  }
  if (!innermost_call) add_call(item.done.correlation, api_of(item.done), start_);
  std::lock_guard lock(state().mutex);
  state().pending[stream_].push_back(std::move(item));
}

void describe(uint32_t signature, const Launch& launch) {
  Work work;
  work.name = launch.kernel;
  if (launch.copy_kind) work.copy_kind = launch.copy_kind;
  work.copy_bytes = launch.copy_bytes;
  work.copy_is_pageable = launch.copy_is_pageable;
  work.resources = launch.resources;
  if (launch.grid[0] != 0) {
    std::copy_n(launch.grid, 3, work.grid);
    std::copy_n(launch.block, 3, work.block);
  }
  std::lock_guard lock(state().mutex);
  state().works.emplace(signature, std::move(work));
}

Finished take_finished() {
  Finished finished;
  std::map<StreamId, std::deque<Pending>> pending;
  {
    std::lock_guard lock(state().mutex);
    finished.calls.swap(state().calls);
    pending.swap(state().pending);
  }
  std::vector<Pending> complete;
  for (auto& [stream, items] : pending) take_complete(items, complete);
  {
    std::lock_guard lock(state().mutex);
    for (auto& [stream, items] : pending) {
      std::deque<Pending>& rest = state().pending[stream];
      rest.insert(rest.begin(), std::move_iterator(items.begin()), std::move_iterator(items.end()));
    }
  }
  finished.work = with_times(std::move(complete));
  return finished;
}

ClockPoint clock_point() { return {__rdtsc(), recorder::now_ns()}; }

std::vector<ClockPoint> clock_points() {
  std::lock_guard lock(state().mutex);
  return state().points;
}

}  // namespace phantora::activity
