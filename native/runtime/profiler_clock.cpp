// By what PyTorch's profiler tells the time. It takes the processor's counter at each op and turns it into Unix time
// afterwards; Kineto drops what lies outside the span from its start to its stop. Both must be of virtual time, as the
// device's activity is. What is taken over are functions of libc10 and libtorch_cpu that these export and call through
// their PLTs; this library is found first, since it is loaded before them into the global scope.
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "phantora/activity.h"
#include "phantora/capi.h"
#include "phantora/export.h"
#include "phantora/recorder.h"

namespace phantora {

namespace {

using activity::ClockPoint;
using Converter = std::function<int64_t(uint64_t)>;

template <typename Function>
Function original(const char* library, const char* name) {
  void* loaded = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  return loaded ? reinterpret_cast<Function>(dlsym(loaded, name)) : nullptr;
}

// When converters were made. PyTorch makes few: one for each of its allocators, and one for each profile.
class Starts {
 public:
  void put(const void* converter) {
    std::lock_guard lock(mutex_);
    starts_[converter] = activity::clock_point();
  }

  std::optional<ClockPoint> of(const void* converter) {
    std::lock_guard lock(mutex_);
    auto found = starts_.find(converter);
    return found == starts_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  std::mutex mutex_;
  std::map<const void*, ClockPoint> starts_;
};

Starts& starts() {
  static Starts* instance = new Starts;  // never destroyed: profilers stop at exit
  return *instance;
}

int64_t unix_now_ns() { return phantora_epoch_ns() + recorder::now_ns(); }

// Virtual time between the points; beyond them as fast as in all.
int64_t interpolate(const std::vector<ClockPoint>& points, uint64_t counter) {
  auto after = std::upper_bound(points.begin() + 1, points.end() - 1, counter,
                                [](uint64_t value, const ClockPoint& point) { return value < point.counter; });
  const ClockPoint &from = *std::prev(after), &to = *after;
  if (to.counter <= from.counter) return from.time_ns;
  double share = (static_cast<double>(counter) - static_cast<double>(from.counter)) /
                 static_cast<double>(to.counter - from.counter);
  return from.time_ns + static_cast<int64_t>(share * static_cast<double>(to.time_ns - from.time_ns));
}

Converter converter_since(const ClockPoint& start) {
  auto points = std::make_shared<std::vector<ClockPoint>>(1, start);
  for (const ClockPoint& point : activity::clock_points()) {
    if (point.counter > start.counter) points->push_back(point);
  }
  points->push_back(activity::clock_point());
  // A call that began earlier may have ended, and been noted, later.
  std::sort(points->begin(), points->end(), [](auto& one, auto& other) { return one.counter < other.counter; });
  // Times of device activity are of Unix time already, which no counter reaches within years.
  return [points, epoch_ns = phantora_epoch_ns()](uint64_t time) {
    int64_t as_unix_ns = static_cast<int64_t>(time);
    return as_unix_ns >= epoch_ns ? as_unix_ns : epoch_ns + interpolate(*points, time);
  };
}

}  // namespace

}  // namespace phantora

namespace c10 {

class PHANTORA_EXPORT ApproximateClockToUnixTimeConverter {
 public:
  ApproximateClockToUnixTimeConverter();
  std::function<int64_t(uint64_t)> makeConverter();
};

ApproximateClockToUnixTimeConverter::ApproximateClockToUnixTimeConverter() {
  static auto real =
      phantora::original<void (*)(void*)>("libc10.so", "_ZN3c1035ApproximateClockToUnixTimeConverterC1Ev");
  real(this);  // for a child that is forked later and is no rank
  if (phantora::recorder::active()) phantora::starts().put(this);
}

std::function<int64_t(uint64_t)> ApproximateClockToUnixTimeConverter::makeConverter() {
  static auto real = phantora::original<std::function<int64_t(uint64_t)> (*)(void*)>(
      "libc10.so", "_ZN3c1035ApproximateClockToUnixTimeConverter13makeConverterEv");
  auto start = phantora::starts().of(this);
  if (!phantora::recorder::active() || !start) return real(this);
  return phantora::converter_since(*start);
}

}  // namespace c10

namespace libkineto {

class PHANTORA_EXPORT GenericActivityProfiler {
 public:
  using Moment = std::chrono::time_point<std::chrono::system_clock, std::chrono::nanoseconds>;
  void startTraceInternal(const Moment& now);
  void stopTraceInternal(const Moment& now);
};

namespace {

using Method = void (*)(void*, const GenericActivityProfiler::Moment&);

GenericActivityProfiler::Moment shown(const GenericActivityProfiler::Moment& now) {
  if (!phantora::recorder::active()) return now;
  return GenericActivityProfiler::Moment(std::chrono::nanoseconds(phantora::unix_now_ns()));
}

}  // namespace

void GenericActivityProfiler::startTraceInternal(const Moment& now) {
  static Method real = phantora::original<Method>(
      "libtorch_cpu.so",
      "_ZN9libkineto23GenericActivityProfiler18startTraceInternalERKNSt6chrono10time_pointINS1_3_V212system_clockENS1_"
      "8durationIlSt5ratioILl1ELl1000000000EEEEEE");
  real(this, shown(now));
}

void GenericActivityProfiler::stopTraceInternal(const Moment& now) {
  static Method real = phantora::original<Method>(
      "libtorch_cpu.so",
      "_ZN9libkineto23GenericActivityProfiler17stopTraceInternalERKNSt6chrono10time_pointINS1_3_V212system_clockENS1_"
      "8durationIlSt5ratioILl1ELl1000000000EEEEEE");
  real(this, shown(now));
}

}  // namespace libkineto
