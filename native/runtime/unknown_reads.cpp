#include "unknown_reads.h"

#include <algorithm>

#include "phantora/recorder.h"

namespace phantora::values {

void UnknownReads::add(const std::string& op, const std::string& place, size_t bytes, uint64_t limit) {
  auto site = sites_.try_emplace({op, place}).first;
  Count& count = site->second;
  ++count.count;
  count.bytes += bytes;
  repeats_ = &count == latest_ ? repeats_ + 1 : 1;
  latest_ = &count;
  if (limit == 0 || repeats_ < limit) return;
  fail(op + (place.empty() ? "" : " at " + place) + " read a value that was never computed " +
           std::to_string(repeats_) + " times in a row: the script waits for it in a loop",
       "values of large tensors are not computed; raise value.limit_bytes so that this one is, or "
       "value.unknown_read_limit (0: no limit) if the loop does end");
}

std::vector<UnknownReads::Site> UnknownReads::summary(size_t most) const {
  std::vector<Site> all;
  for (const auto& [key, count] : sites_) all.push_back({key.first, key.second, count.count, count.bytes});
  std::stable_sort(all.begin(), all.end(), [](const Site& a, const Site& b) { return a.count > b.count; });
  if (all.size() <= most) return all;
  Site others{"", std::to_string(all.size() - most) + " more sites"};
  for (size_t i = most; i < all.size(); ++i) {
    others.count += all[i].count;
    others.bytes += all[i].bytes;
  }
  all.resize(most);
  all.push_back(others);
  return all;
}

}  // namespace phantora::values
