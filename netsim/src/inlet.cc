#include "inlet.h"

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

}  // namespace

// Goes through a batch as if it were applied, on the side.
class Inlet::Check {
 public:
  Check(const Inlet& inlet, const Definitions& definitions)
      : inlet_(inlet), definitions_(definitions), lanes_(inlet.lanes_) {}

  void run(std::string_view bytes) {
    if (bytes.size() % sizeof(Record) != 0) {
      throw std::invalid_argument(subject() + "a batch of " + std::to_string(bytes.size()) +
                                  " bytes, not a multiple of 32");
    }
    for (number_ = 0; number_ < bytes.size() / sizeof(Record); ++number_) check(record_at(bytes, number_));
  }

  // What follows from the whole batch.
  std::vector<Lane> take_lanes() { return std::move(lanes_); }

 private:
  std::string subject() const { return "rank " + std::to_string(index(inlet_.rank_)) + ": "; }

  void require(bool condition, const char* what, uint64_t value) const {
    if (condition) return;
    throw std::invalid_argument(subject() + "record " + std::to_string(number_) + " of the batch: " + what + " " +
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
        check_new_recording(record.a);
        break;
      case Kind::stream_wait:
        check_stream(record.stream);
        check_recording(record.a);
        break;
      case Kind::sync:
      case Kind::query:
        check_target(record);
        break;
      case Kind::event_time:
        check_recording(record.a);
        break;
      case Kind::event_forget:
        check_recording(record.a);
        made_.erase(record.a);
        forgotten_.insert(record.a);
        break;
      case Kind::host_sync:
        require(definitions_.host_call(inlet_.rank_, record.a), "host group not defined:", record.a);
        break;
      case Kind::mark:
        check_stream(record.stream);
        break;
      case Kind::memory:
        require(record.stream <= INT32_MAX, "no such device:", record.stream);
        break;
      case Kind::lane_begin:
        begin_lane(record.a);
        break;
      case Kind::lane_end:
        lanes_[record.lane].open = false;
        break;
      case Kind::clock:
        break;
    }
    if (record.kind == Kind::sync || record.kind == Kind::host_sync) lanes_[record.lane].delta_ns = 0;
  }

  void check_lane(const Record& record) {
    require(record.lane < lanes_.size() && lanes_[record.lane].open, "no such lane, or it has ended:", record.lane);
    require(record.delta_ns <= static_cast<uint64_t>(kLast), "absurd delta_ns", record.delta_ns);
    uint64_t& last = lanes_[record.lane].delta_ns;
    require(record.delta_ns >= last, "delta_ns goes back, to", record.delta_ns);
    last = record.delta_ns;
  }

  void check_flags(const Record& record) const {
    uint8_t most = 0;
    if (record.kind == Kind::kernel) most = kLaterLaunch;
    if (record.kind == Kind::sync || record.kind == Kind::query) most = static_cast<uint8_t>(Target::device);
    require(record.flags <= most, "unknown flags", record.flags);
  }

  void check_target(const Record& record) const {
    if (Target(record.flags) == Target::stream) check_stream(record.stream);
    if (Target(record.flags) == Target::recording) check_recording(record.a);
  }

  void check_stream(uint32_t stream) const {
    require(definitions_.device(inlet_.rank_, stream) >= 0, "stream not defined:", stream);
  }

  bool known(uint64_t recording) const {
    if (made_.contains(recording)) return true;
    return inlet_.recordings_.contains(recording) && !forgotten_.contains(recording);
  }

  void check_recording(uint64_t recording) const {
    require(known(recording), "recording never made, or forgotten:", recording);
  }

  void check_new_recording(uint64_t recording) {
    require(!known(recording), "recording made twice:", recording);
    made_.insert(recording);
  }

  void begin_lane(uint64_t lane) {
    require(lane > 0 && lane <= UINT16_MAX, "a lane cannot be", lane);
    if (lanes_.size() <= lane) lanes_.resize(lane + 1);
    require(!lanes_[lane].begun, "lane began already:", lane);
    lanes_[lane] = {.begun = true, .open = true};
  }

  const Inlet& inlet_;
  const Definitions& definitions_;
  std::vector<Lane> lanes_;
  std::unordered_set<uint64_t> made_;  // recordings of this batch
  std::unordered_set<uint64_t> forgotten_;
  size_t number_ = 0;
};

void Inlet::feed(std::string_view bytes, World& world) {
  Check check(*this, world.definitions());
  check.run(bytes);
  lanes_ = check.take_lanes();
  std::vector<std::shared_ptr<Batch>> batches(lanes_.size());
  const size_t count = bytes.size() / sizeof(Record);
  for (size_t i = 0; i < count; ++i) {
    Step step = record_at(bytes, i);
    if (step.kind == Kind::kernel) {
      const KernelCost& cost = *world.definitions().kernel(rank_, step.a);
      step.b = static_cast<uint64_t>((step.flags & kLaterLaunch) != 0 ? cost.later : cost.duration);
    } else if (step.kind == Kind::lane_begin) {
      world.add_lane(rank_, LaneId(step.a));
    } else if (names_recording(step)) {
      step.a = static_cast<uint64_t>(refer(step, world));
    }
    std::shared_ptr<Batch>& batch = batches[step.lane];
    if (!batch) {
      batch = std::make_shared<Batch>();
      batch->reserve(count - i);
    }
    batch->push_back(step);
  }
  for (size_t lane = 0; lane < batches.size(); ++lane) {
    if (batches[lane]) world.append(rank_, LaneId(lane), std::move(batches[lane]));
  }
}

// The slot of the recording that a record names; an event_record makes it, an event_forget takes its name away.
RecordingId Inlet::refer(const Record& record, World& world) {
  if (record.kind == Kind::event_record) recordings_[record.a] = world.add_recording(rank_, record.a);
  const RecordingId recording = recordings_.at(record.a);
  world.refer(rank_, recording);
  if (record.kind == Kind::event_forget) recordings_.erase(record.a);
  return recording;
}

}  // namespace phantora::netsim
