// Tells the runtime which blocks PyTorch's caching allocator has handed out.
#pragma once

namespace phantora::aten {

// Begins as soon as the allocator is in use; cheap to call again.
void follow_allocator();

}  // namespace phantora::aten
