// A process that a launcher of MPI programs has started: which rank of the job it is.
#pragma once

namespace phantora::preload {

bool is_launched_rank();

// Index of its emulated node.
int launched_node();

}  // namespace phantora::preload
