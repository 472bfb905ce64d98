// Groups of ranks whose hosts meet outside NCCL: for gloo's collectives, or MPI's.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "phantora/export.h"

namespace phantora {
namespace host_groups PHANTORA_EXPORT {

struct Group {
  std::string uid;  // the same on all members, and of no other group
  std::string what;
  int64_t size;
  int64_t index;                // this rank's
  std::vector<uint64_t> ranks;  // the job's, by index; none if they are not known
};

// The number of its definition, made at its first use.
uint32_t find_or_define(const Group& group);

}  // namespace host_groups PHANTORA_EXPORT
}  // namespace phantora
