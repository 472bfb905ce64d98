// Zeros without touching what is not touched yet.
#pragma once
#include <cstddef>

namespace phantora {

// Whole pages of our own mappings, private or of a physical::Extent, are given back to the host; the rest is written.
void zero_pages(void* p, size_t bytes);

}  // namespace phantora
