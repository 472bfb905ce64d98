#include "outbox.h"

#include <cstring>

namespace phantora {

namespace {

constexpr size_t header_bytes = 8;

std::string frame_header(wire::FrameType type, uint32_t payload_bytes) {
  std::string header(header_bytes, '\0');
  uint16_t number = static_cast<uint16_t>(type);
  std::memcpy(header.data(), &payload_bytes, sizeof payload_bytes);
  std::memcpy(header.data() + sizeof payload_bytes, &number, sizeof number);
  return header;
}

}  // namespace

void Outbox::set_length(size_t frame, size_t payload_bytes) {
  uint32_t length = static_cast<uint32_t>(payload_bytes);
  std::memcpy(bytes_.data() + frame, &length, sizeof length);
}

void Outbox::add(const wire::Record& record) {
  if (batch_ == none) {
    batch_ = bytes_.size();
    bytes_ += frame_header(wire::FrameType::batch, 0);
  }
  bytes_.append(reinterpret_cast<const char*>(&record), sizeof record);
  set_length(batch_, bytes_.size() - batch_ - header_bytes);
}

void Outbox::add(wire::FrameType type, std::string_view payload) {
  batch_ = none;
  bytes_ += frame_header(type, static_cast<uint32_t>(payload.size()));
  bytes_ += payload;
}

std::string Outbox::take() {
  batch_ = none;
  return std::exchange(bytes_, {});
}

}  // namespace phantora
