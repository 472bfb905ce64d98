// What a shared library file says that it needs.
#pragma once

namespace phantora::preload {

// Calls visit(name, context) for each DT_NEEDED of a 64-bit little-endian ELF file until it returns true, and returns
// that. False for anything else, readable or not.
bool any_needed(const char* path, bool (*visit)(const char* name, void* context), void* context);

}  // namespace phantora::preload
