// The bytes of docs/protocol.md, writing side.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "phantora/export.h"

namespace phantora {
namespace wire PHANTORA_EXPORT {

enum class FrameType : uint16_t {
  hello = 1,
  define = 2,
  batch = 3,
  data = 4,
  bye = 5,
  job = 6,
  exited = 7,
  outside = 8,
  reply = 64,
  correction = 65,
  abort = 66,
};

enum class RecordKind : uint8_t {
  kernel = 1,
  event_record = 2,
  stream_wait = 3,
  collective = 4,
  sync = 5,
  query = 6,
  event_time = 7,
  host_sync = 8,
  clock = 9,
  mark = 10,
  lane_begin = 11,
  lane_end = 12,
  memory = 13,
  event_forget = 14,
  abort = 15,
};

enum class Target : uint8_t { stream = 0, recording = 1, device = 2 };
// Flags of kernel records, the second one of collectives as well.
inline constexpr uint8_t later_launch = 1;
inline constexpr uint8_t within_launch = 2;

struct Record {
  RecordKind kind;
  uint8_t flags;
  uint16_t lane;
  uint32_t stream;
  uint64_t delta_ns;
  uint64_t a;
  uint64_t b;
};
static_assert(sizeof(Record) == 32);

// Appends msgpack; maps and arrays announce their size first.
class Pack {
 public:
  Pack& map(uint32_t pairs);
  Pack& array(uint32_t items);
  Pack& text(std::string_view value);
  Pack& bytes(std::string_view value);
  Pack& integer(int64_t value);
  Pack& natural(uint64_t value);  // for values that need the 64th bit
  Pack& real(double value);
  Pack& boolean(bool value);
  Pack& nil();
  Pack& raw(std::string_view packed) {
    out_.append(packed);
    return *this;
  }
  const std::string& str() const { return out_; }

 private:
  std::string out_;
};

}  // namespace wire PHANTORA_EXPORT
}  // namespace phantora
