// What a launch asks for beside its shape. The runtime and the driver share the layout.
#pragma once
#include <algorithm>
#include <cstdint>

#include "phantora/kernels.h"

namespace phantora::shim {

enum class LaunchAttributeId : int {
  cooperative = 2,
  cluster_dimension = 4,
  programmatic_event = 7,
  launch_completion_event = 12,
};

// cudaLaunchAttribute, CUlaunchAttribute. What changes neither cost nor order, such as a priority, is not spelt out.
struct LaunchAttribute {
  LaunchAttributeId id;
  char padding[4];
  union {
    int cooperative;
    uint32_t cluster[3];
    char room[64];
  };
};

// Takes them over into `shape`. False: one asks for an event in the middle of a kernel, which there is none.
inline bool apply(const LaunchAttribute* attributes, unsigned count, kernels::Shape& shape) {
  for (const LaunchAttribute* each = attributes; each != attributes + count; ++each) {
    switch (each->id) {
      case LaunchAttributeId::cooperative:
        shape.cooperative = each->cooperative != 0;
        break;
      case LaunchAttributeId::cluster_dimension:
        std::copy_n(each->cluster, 3, shape.cluster);
        break;
      case LaunchAttributeId::programmatic_event:
      case LaunchAttributeId::launch_completion_event:
        return false;
    }
  }
  return true;
}

}  // namespace phantora::shim
