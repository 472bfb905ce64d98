// Frames that wait to be sent. Records that follow one another share a BATCH frame.
#pragma once
#include <string>
#include <string_view>
#include <utility>

#include "phantora/wire.h"

namespace phantora {

class Outbox {
 public:
  void add(const wire::Record& record);
  void add(wire::FrameType type, std::string_view payload);
  bool empty() const { return bytes_.empty(); }
  size_t size() const { return bytes_.size(); }
  std::string take();

 private:
  static constexpr size_t none = std::string::npos;

  void set_length(size_t frame, size_t payload_bytes);

  std::string bytes_;
  size_t batch_ = none;  // where the open BATCH frame begins
};

}  // namespace phantora
