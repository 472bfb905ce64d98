// What a buffer holds at one moment: its bytes and which of them are known. Unknown stretches take no memory and count
// as zeros, so that the content of a large buffer that nothing computed costs nothing to keep or to send.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "phantora/values.h"

namespace phantora::nccl {

class Content {
 public:
  using State = values::State;

  Content() = default;  // no bytes
  static Content capture(const void* from, size_t bytes);
  static Content unknown(size_t bytes);
  static Content unpack(std::string_view packed);
  std::string pack() const;

  // Stores the bytes and marks their states.
  void place(void* to) const;

  size_t size() const { return size_; }
  bool known() const;

  Content slice(size_t offset, size_t bytes) const;
  void append(const Content& other);

  // For arithmetic in place: zeros stand in the unknown stretches.
  char* materialise();

  // An element is known if it is in both, unknown if it is in neither, else tainted. Equal sizes.
  void blend_states(const Content& other, size_t element_bytes);
  // What was computed with something unknown: nothing stays known.
  void taint();

 private:
  struct Stretch {
    uint64_t bytes;
    State state;
  };

  bool stored() const { return !bytes_.empty(); }
  void extend(uint64_t bytes, State state);

  size_t size_ = 0;
  std::vector<Stretch> stretches_;  // no two neighbours of one state
  std::string bytes_;               // all of them, or none where every stretch is unknown
};

}  // namespace phantora::nccl
