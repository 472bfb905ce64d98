// What a profiler inside the rank is told of its calls and of the device's work: behind CUPTI. While nobody listens
// nothing is kept, and nothing is sent. Times are nanoseconds of virtual time.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "phantora/export.h"
#include "phantora/launch.h"
#include "phantora/recorder.h"

namespace phantora {
namespace activity PHANTORA_EXPORT {

void start();
void stop();
bool is_on();

// Functions of the CUDA runtime, by CUPTI's numbers.
enum class Api : uint32_t {
  memcpy_async = 41,
  memset_async = 51,
  stream_synchronize = 131,
  event_synchronize = 137,
  device_synchronize = 165,
  launch_kernel = 211,
  graph_launch = 311,
};

// How virtual time went with the processor's own counter …
struct ClockPoint {
  uint64_t counter;
  int64_t time_ns;
};

// The profiler's own numbers for what it was in when a call was made, one at most of each kind.
using Externals = std::vector<std::pair<int, uint64_t>>;  // kind, number

void push_external(int kind, uint64_t number);  // of the calling thread
bool pop_external(int kind, uint64_t* number);  // false: there is none

// The calling thread is in a call of the CUDA runtime. Work without one makes its own.
class Call {
 public:
  explicit Call(Api api);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 private:
  friend class Issue;
  Call* outer_ = nullptr;
  uint32_t correlation_ = 0;  // 0: nobody listens
  Api api_;
  ClockPoint start_{};
};

// Work on a stream: recorded while it lives, so that its beginning and its end can be asked for.
class Issue {
 public:
  Issue(StreamId stream, uint32_t signature);
  Issue(StreamId stream, std::string_view name);
  ~Issue();
  Issue(const Issue&) = delete;
  Issue& operator=(const Issue&) = delete;

 private:
  void begin();

  StreamId stream_;
  uint32_t signature_ = 0;
  std::string name_;
  RecordingId begin_ = 0;  // 0: nobody listens
  ClockPoint start_{};     // of the call that it is part of, if that is its own
};

// What work is, by signature. The first description counts.
void describe(uint32_t signature, const Launch& launch);

struct Made {  // a call
  uint32_t correlation = 0;
  Api api = Api::launch_kernel;
  uint32_t thread = 0;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  Externals externals;
};

struct Done {  // by a device, for the call with that correlation
  uint32_t correlation = 0;
  const char* name = "";  // lives as long as the process
  std::string_view copy_kind;
  uint64_t copy_bytes = 0;
  bool copy_is_pageable = false;
  uint32_t grid[3] = {1, 1, 1};
  uint32_t block[3] = {1, 1, 1};
  Resources resources;
  StreamId stream = 0;
  int device = 0;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  Externals externals;
};

struct Finished {
  std::vector<Made> calls;
  std::vector<Done> work;
};
// What has been made and done, at the clock of the calling thread's lane, and was not taken before. Asks the simulator.
Finished take_finished();

ClockPoint clock_point();
std::vector<ClockPoint> clock_points();  // … while somebody listened, on lane 0

}  // namespace activity PHANTORA_EXPORT
}  // namespace phantora
