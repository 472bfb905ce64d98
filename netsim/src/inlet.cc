#include "inlet.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>
#include <string>
#include <unordered_set>

namespace phantora::netsim {

static_assert(std::endian::native == std::endian::little, "records are read as they lie in memory");

namespace {

Record record_at(std::string_view bytes, size_t i) {
  Record record;
  std::memcpy(&record, bytes.data() + i * sizeof(Record), sizeof(Record));
  return record;
}

bool names_recording(const Record& record) {
  switch (record.kind) {
    case Kind::event_record:
    case Kind::stream_wait:
    case Kind::event_time:
    case Kind::event_forget:
      return true;
    case Kind::sync:
    case Kind::query:
      return Target(record.flags) == Target::recording;
    default:
      return false;
  }
}

bool blocks(const Record& record) { return record.kind == Kind::sync || record.kind == Kind::host_sync; }

template <class Lanes>
auto* find_lane(Lanes& lanes, uint16_t number) {
  const auto found =
      std::find_if(lanes.begin(), lanes.end(), [number](const auto& lane) { return lane.number == number; });
  return found == lanes.end() ? nullptr : &*found;
}

}  // namespace

// Goes through a batch as if it were taken in, on the side.
class Inlet::Check {
 public:
  Check(const Inlet& inlet, const Definitions& definitions) : inlet_(inlet), definitions_(definitions) {
    for (const OpenLane& lane : inlet.lanes_) lanes_.push_back({.number = lane.number, .delta_ns = lane.delta_ns});
  }

  void run(std::string_view bytes) {
    if (bytes.size() % sizeof(Record) != 0) {
      throw std::invalid_argument(subject() + "a batch of " + std::to_string(bytes.size()) +
                                  " bytes, not a multiple of 32");
    }
    for (place_ = 0; place_ < bytes.size() / sizeof(Record); ++place_) check(record_at(bytes, place_));
  }

 private:
  std::string subject() const { return "rank " + std::to_string(index(inlet_.rank_)) + ": "; }

  void require(bool condition, const char* what, uint64_t value) const {
    if (condition) return;
    throw std::invalid_argument(subject() + "record " + std::to_string(place_) + " of the batch: " + what + " " +
                                std::to_string(value));
  }

  void check(const Record& record) {
    const auto kind = static_cast<uint8_t>(record.kind);
    require(kind >= 1 && kind <= kLastKind, "unknown kind", kind);
    check_lane(record);
    check_flags(record);
    switch (record.kind) {
      case Kind::kernel:
        check_stream(record.stream);
        require(definitions_.kernel(inlet_.rank_, record.a), "kernel signature not defined:", record.a);
        break;
      case Kind::collective:
        check_stream(record.stream);
        require(definitions_.call(inlet_.rank_, record.a), "collective not defined:", record.a);
        break;
      case Kind::event_record:
        check_stream(record.stream);
        require(!known(record.a), "recording made twice:", record.a);
        made_.insert(record.a);
        break;
      case Kind::stream_wait:
        check_stream(record.stream);
        check_recording(record.a);
        break;
      case Kind::sync:
      case Kind::query:
        if (Target(record.flags) == Target::stream) check_stream(record.stream);
        if (Target(record.flags) == Target::recording) check_recording(record.a);
        break;
      case Kind::event_time:
        check_recording(record.a);
        break;
      case Kind::event_forget:
        check_recording(record.a);
        if (made_.erase(record.a) == 0) forgotten_.insert(record.a);
        break;
      case Kind::host_sync:
        require(definitions_.host_call(inlet_.rank_, record.a), "host group not defined:", record.a);
        break;
      case Kind::abort:
        require(definitions_.abort(inlet_.rank_, record.a), "abort not defined:", record.a);
        break;
      case Kind::mark:
      case Kind::memory:
        check_stream(record.stream);
        break;
      case Kind::lane_begin:
        require(record.a <= UINT16_MAX, "no such lane:", record.a);
        require(!find_lane(lanes_, static_cast<uint16_t>(record.a)), "lane began twice:", record.a);
        lanes_.push_back({.number = static_cast<uint16_t>(record.a)});
        break;
      case Kind::lane_end:
        std::erase_if(lanes_, [&](const OpenLane& lane) { return lane.number == record.lane; });
        break;
      case Kind::clock:
        break;
    }
  }

  void check_lane(const Record& record) {
    OpenLane* lane = find_lane(lanes_, record.lane);
    require(lane, "no such lane, or it has ended:", record.lane);
    require(record.delta_ns <= static_cast<uint64_t>(kLast), "absurd delta_ns", record.delta_ns);
    require(record.delta_ns >= lane->delta_ns, "delta_ns goes back, to", record.delta_ns);
    lane->delta_ns = blocks(record) ? 0 : record.delta_ns;
  }

  void check_flags(const Record& record) const {
    uint8_t most = 0;
    if (record.kind == Kind::kernel) most = kLaterLaunch | kWithinLaunch;
    if (record.kind == Kind::collective) {
      require((record.flags & kLaterLaunch) == 0, "unknown flags", record.flags);
      most = kWithinLaunch;
    }
    if (record.kind == Kind::sync || record.kind == Kind::query) most = static_cast<uint8_t>(Target::device);
    require(record.flags <= most, "unknown flags", record.flags);
  }

  void check_stream(uint32_t stream) const {
    require(definitions_.device(inlet_.rank_, stream) >= 0, "stream not defined:", stream);
  }

  void check_recording(uint64_t recording) const {
    require(known(recording), "recording never made, or forgotten:", recording);
  }

  bool known(uint64_t recording) const {
    if (made_.contains(recording)) return true;
    return inlet_.recordings_.contains(recording) && !forgotten_.contains(recording);
  }

  const Inlet& inlet_;
  const Definitions& definitions_;
  std::vector<OpenLane> lanes_;
  std::unordered_set<uint64_t> made_;       // recordings of this batch that are not forgotten in it
  std::unordered_set<uint64_t> forgotten_;  // earlier recordings that are
  size_t place_ = 0;
};

void Inlet::feed(std::string_view bytes, World& world) {
  Check(*this, world.definitions()).run(bytes);
  const size_t count = bytes.size() / sizeof(Record);
  OpenLane* lane = nullptr;
  for (size_t i = 0; i < count; ++i) {
    const Record record = record_at(bytes, i);
    if (!lane || lane->number != record.lane) lane = find_lane(lanes_, record.lane);
    lane->delta_ns = blocks(record) ? 0 : record.delta_ns;
    if (!lane->steps) {
      lane->steps = std::make_shared<Batch>();
      lane->steps->reserve(count - i);
    }
    lane->steps->push_back(translate(record, world));
    if (record.kind == Kind::lane_begin) {
      lanes_.push_back({.number = static_cast<uint16_t>(record.a), .lane = LaneId(lane->steps->back().a)});
    } else if (record.kind == Kind::lane_end) {
      close(*lane, world);
    } else {
      continue;
    }
    lane = nullptr;
  }
  for (OpenLane& open : lanes_) hand_over(open, world);
}

// The record as the world executes it.
Step Inlet::translate(const Record& record, World& world) {
  Step step = record;
  if (record.kind == Kind::kernel) {
    const KernelCost& cost = *world.definitions().kernel(rank_, record.a);
    step.b = static_cast<uint64_t>((record.flags & kLaterLaunch) != 0 ? cost.later : cost.duration);
  } else if (record.kind == Kind::lane_begin) {
    step.a = index(world.add_lane(rank_, static_cast<uint16_t>(record.a)));
  } else if (names_recording(record)) {
    step.a = index(refer(record, world));
  }
  return step;
}

// The slot of the recording that a record names; an event_record makes it, an event_forget takes its name away.
RecordingId Inlet::refer(const Record& record, World& world) {
  if (record.kind == Kind::event_record) recordings_[record.a] = world.add_recording(rank_, record.a);
  const RecordingId recording = recordings_.at(record.a);
  world.refer(rank_, recording);
  if (record.kind == Kind::event_forget) recordings_.erase(record.a);
  return recording;
}

void Inlet::hand_over(OpenLane& lane, World& world) {
  if (lane.steps) world.append(rank_, lane.lane, std::exchange(lane.steps, nullptr));
}

void Inlet::close(OpenLane& lane, World& world) {
  hand_over(lane, world);
  std::erase_if(lanes_, [number = lane.number](const OpenLane& open) { return open.number == number; });
}

}  // namespace phantora::netsim
