#include "phantora/host_groups.h"

#include <map>
#include <mutex>

#include "phantora/recorder.h"
#include "phantora/wire.h"

namespace phantora::host_groups {

namespace {

uint32_t define(const Group& group) {
  uint32_t id = recorder::next_definition_id("host_group");
  wire::Pack pack;
  pack.map(7).text("t").text("host_group").text("id").integer(id).text("uid").bytes(group.uid);
  pack.text("size").integer(group.size).text("index").integer(group.index);
  pack.text("ranks").array(static_cast<uint32_t>(group.ranks.size()));
  for (uint64_t rank : group.ranks) pack.integer(static_cast<int64_t>(rank));
  recorder::define(pack.text("what").text(group.what).str());
  return id;
}

}  // namespace

uint32_t find_or_define(const Group& group) {
  static auto* mutex = new std::mutex;  // never destroyed: ranks meet until they end
  static auto* ids = new std::map<std::string, uint32_t>;
  std::lock_guard guard(*mutex);
  auto [slot, is_new] = ids->try_emplace(group.uid, 0);
  if (is_new) slot->second = define(group);
  return slot->second;
}

}  // namespace phantora::host_groups
