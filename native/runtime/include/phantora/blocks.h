// How far device memory reaches from a pointer: to the end of the block that a framework's allocator has handed out, of
// the large regions that it takes from CUDA; else to the end of the region.
#pragma once
#include <cstddef>

#include "phantora/export.h"

namespace phantora {
namespace blocks PHANTORA_EXPORT {

void note(const void* base, size_t bytes);
void forget(const void* base);

size_t reach(const void* pointer);  // bytes; 0: no device memory

}  // namespace blocks PHANTORA_EXPORT
}  // namespace phantora
