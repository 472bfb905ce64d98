// Handles of graphs as callers see them.
#pragma once
#include <vector>

#include "cudart/types.h"
#include "phantora/graph.h"

namespace phantora::cudart {

using GraphHandle = void*;       // cudaGraph_t
using NodeHandle = void*;        // cudaGraphNode_t
using ExecutableHandle = void*;  // cudaGraphExec_t
using UserObject = void*;        // cudaUserObject_t

inline std::vector<graphs::Node*> nodes_of(const NodeHandle* handles, size_t count) {
  std::vector<graphs::Node*> nodes;
  for (size_t i = 0; handles && i < count; ++i) nodes.push_back(static_cast<graphs::Node*>(handles[i]));
  return nodes;
}

}  // namespace phantora::cudart
