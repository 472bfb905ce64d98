#include "nccl/content.h"

#include <algorithm>
#include <cstring>

#include "phantora/recorder.h"

namespace phantora::nccl {
namespace {

using State = values::State;

State blend(State a, State b) { return a == b ? a : State::tainted; }

// The packed form: u64 number of stretches, each as u64 (bytes * 4 + state), then the bytes of those that are not
// unknown.
void put(std::string& out, uint64_t value) { out.append(reinterpret_cast<const char*>(&value), sizeof value); }

uint64_t get(std::string_view& in) {
  uint64_t value = 0;
  if (in.size() < sizeof value) {
    fail("an NCCL message is shorter than it says", "all ranks must run the same version of phantora_py");
  }
  std::memcpy(&value, in.data(), sizeof value);
  in.remove_prefix(sizeof value);
  return value;
}

}  // namespace

Content Content::capture(const void* from, size_t bytes) {
  Content content;
  const auto* source = static_cast<const char*>(from);
  values::for_each_stretch(from, bytes, [&](size_t offset, size_t length, State state) {
    content.extend(length, state);
    if (state == State::unknown) return;
    content.bytes_.resize(bytes);
    std::memcpy(content.bytes_.data() + offset, source + offset, length);
  });
  return content;
}

Content Content::unknown(size_t bytes) {
  Content content;
  content.extend(bytes, State::unknown);
  return content;
}

std::string Content::pack() const {
  std::string packed;
  put(packed, stretches_.size());
  for (const Stretch& stretch : stretches_) put(packed, stretch.bytes * 4 + static_cast<uint64_t>(stretch.state));
  size_t offset = 0;
  for (const Stretch& stretch : stretches_) {
    if (stretch.state != State::unknown) packed.append(bytes_, offset, stretch.bytes);
    offset += stretch.bytes;
  }
  return packed;
}

Content Content::unpack(std::string_view packed) {
  Content content;
  for (uint64_t stretches = get(packed); stretches > 0; --stretches) {
    const uint64_t code = get(packed);
    content.extend(code / 4, static_cast<State>(code % 4));
  }
  size_t offset = 0;
  for (const Stretch& stretch : content.stretches_) {
    if (stretch.state != State::unknown) {
      content.bytes_.resize(content.size_);
      packed.copy(content.bytes_.data() + offset, stretch.bytes);
      packed.remove_prefix(std::min<size_t>(packed.size(), stretch.bytes));
    }
    offset += stretch.bytes;
  }
  return content;
}

void Content::place(void* to) const {
  auto* target = static_cast<char*>(to);
  size_t offset = 0;
  for (const auto& [bytes, state] : stretches_) {
    if (state != State::unknown) std::memcpy(target + offset, bytes_.data() + offset, bytes);
    switch (state) {
      case State::known:
        values::mark_known(target + offset, bytes);
        break;
      case State::tainted:
        values::mark_tainted(target + offset, bytes);
        break;
      case State::unknown:
        values::mark_unknown(target + offset, bytes);
        break;
    }
    offset += bytes;
  }
}

bool Content::known() const {
  return std::all_of(stretches_.begin(), stretches_.end(), [](const Stretch& s) { return s.state == State::known; });
}

Content Content::slice(size_t offset, size_t bytes) const {
  Content part;
  size_t begin = 0;
  for (const Stretch& stretch : stretches_) {
    const size_t end = begin + stretch.bytes;
    const size_t from = std::max(begin, offset), to = std::min(end, offset + bytes);
    if (from < to) part.extend(to - from, stretch.state);
    begin = end;
  }
  const bool all_unknown = part.stretches_.size() == 1 && part.stretches_[0].state == State::unknown;
  if (stored() && !all_unknown) part.bytes_ = bytes_.substr(offset, part.size_);
  return part;
}

void Content::append(const Content& other) {
  const size_t offset = size_;
  for (const Stretch& stretch : other.stretches_) extend(stretch.bytes, stretch.state);
  if (!stored() && !other.stored()) return;
  bytes_.resize(size_);
  other.bytes_.copy(bytes_.data() + offset, other.bytes_.size());
}

char* Content::materialise() {
  bytes_.resize(size_);
  return bytes_.data();
}

void Content::blend_states(const Content& other, size_t element_bytes) {
  std::vector<Stretch> mine;
  mine.swap(stretches_);
  size_ = 0;
  auto a = mine.begin();
  auto b = other.stretches_.begin();
  uint64_t left_a = a == mine.end() ? 0 : a->bytes;
  uint64_t left_b = b == other.stretches_.end() ? 0 : b->bytes;
  bool aligned = true;
  while (left_a > 0 && left_b > 0) {
    const uint64_t both = std::min(left_a, left_b);
    extend(both, blend(a->state, b->state));
    aligned = aligned && both % element_bytes == 0;
    if ((left_a -= both) == 0 && ++a != mine.end()) left_a = a->bytes;
    if ((left_b -= both) == 0 && ++b != other.stretches_.end()) left_b = b->bytes;
  }
  if (!aligned) taint();  // an element lies in two stretches
}

void Content::taint() {
  const size_t bytes = size_;
  size_ = 0;
  stretches_.clear();
  extend(bytes, State::tainted);
  bytes_.resize(bytes);
}

void Content::extend(uint64_t bytes, State state) {
  if (bytes == 0) return;
  size_ += bytes;
  if (!stretches_.empty() && stretches_.back().state == state) {
    stretches_.back().bytes += bytes;
  } else {
    stretches_.push_back({bytes, state});
  }
}

}  // namespace phantora::nccl
