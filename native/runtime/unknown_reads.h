// Host reads of values that nothing computed, by op and call site.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace phantora::values {

// A loop that waits for such a value (`while mask.any()`) would never end, so the same site again and again with no
// sign of progress in between ends the process. Not thread-safe.
class UnknownReads {
 public:
  struct Site {
    std::string op;
    std::string place;
    uint64_t count = 0;
    uint64_t bytes = 0;
  };

  void add(const std::string& op, const std::string& place, size_t bytes, uint64_t limit);
  void progress() { repeats_ = 0; }

  // The `most` busiest sites, busiest first; what does not fit is summed up in one more.
  std::vector<Site> summary(size_t most) const;

 private:
  using Key = std::pair<std::string, std::string>;
  struct Count {
    uint64_t count = 0;
    uint64_t bytes = 0;
  };

  std::map<Key, Count> sites_;
  const Count* latest_ = nullptr;
  uint64_t repeats_ = 0;
};

}  // namespace phantora::values
