#include "phantora/wire.h"

#include <bit>

namespace phantora::wire {

namespace {

template <typename Unsigned>
void append_big_endian(std::string& out, Unsigned value) {
  for (int shift = static_cast<int>(sizeof(Unsigned)) * 8 - 8; shift >= 0; shift -= 8) {
    out.push_back(static_cast<char>(value >> shift & 0xff));
  }
}

template <typename Unsigned>
void append_tagged(std::string& out, unsigned char tag, Unsigned value) {
  out.push_back(static_cast<char>(tag));
  append_big_endian(out, value);
}

}  // namespace

Pack& Pack::map(uint32_t pairs) {
  if (pairs < 16) {
    out_.push_back(static_cast<char>(0x80 | pairs));
  } else if (pairs <= 0xffff) {
    append_tagged(out_, 0xde, static_cast<uint16_t>(pairs));
  } else {
    append_tagged(out_, 0xdf, pairs);
  }
  return *this;
}

Pack& Pack::array(uint32_t items) {
  if (items < 16) {
    out_.push_back(static_cast<char>(0x90 | items));
  } else if (items <= 0xffff) {
    append_tagged(out_, 0xdc, static_cast<uint16_t>(items));
  } else {
    append_tagged(out_, 0xdd, items);
  }
  return *this;
}

Pack& Pack::text(std::string_view value) {
  if (value.size() < 32) {
    out_.push_back(static_cast<char>(0xa0 | value.size()));
  } else if (value.size() <= 0xff) {
    append_tagged(out_, 0xd9, static_cast<uint8_t>(value.size()));
  } else if (value.size() <= 0xffff) {
    append_tagged(out_, 0xda, static_cast<uint16_t>(value.size()));
  } else {
    append_tagged(out_, 0xdb, static_cast<uint32_t>(value.size()));
  }
  out_.append(value);
  return *this;
}

Pack& Pack::bytes(std::string_view value) {
  if (value.size() <= 0xff) {
    append_tagged(out_, 0xc4, static_cast<uint8_t>(value.size()));
  } else if (value.size() <= 0xffff) {
    append_tagged(out_, 0xc5, static_cast<uint16_t>(value.size()));
  } else {
    append_tagged(out_, 0xc6, static_cast<uint32_t>(value.size()));
  }
  out_.append(value);
  return *this;
}

Pack& Pack::integer(int64_t value) {
  if (value >= 0 && value < 128) {
    out_.push_back(static_cast<char>(value));
  } else if (value < 0 && value >= -32) {
    out_.push_back(static_cast<char>(value));
  } else if (value >= INT32_MIN && value <= INT32_MAX) {
    append_tagged(out_, 0xd2, static_cast<uint32_t>(value));
  } else {
    append_tagged(out_, 0xd3, static_cast<uint64_t>(value));
  }
  return *this;
}

Pack& Pack::natural(uint64_t value) {
  append_tagged(out_, 0xcf, value);
  return *this;
}

Pack& Pack::real(double value) {
  append_tagged(out_, 0xcb, std::bit_cast<uint64_t>(value));
  return *this;
}

Pack& Pack::boolean(bool value) {
  out_.push_back(static_cast<char>(value ? 0xc3 : 0xc2));
  return *this;
}

Pack& Pack::nil() {
  out_.push_back(static_cast<char>(0xc0));
  return *this;
}

}  // namespace phantora::wire
