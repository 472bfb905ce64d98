// Our libraries, which carry the SONAMEs of NVIDIA's: <this library's folder>/cuda13/*.
#pragma once

namespace phantora::preload {

// The path of our library of that SONAME, to be used in its place; null if we have none.
const char* our_library(const char* soname);

// Opens the whole set for everyone, so that the dynamic linker takes ours for the names from then on. Once; cheap
// afterwards.
void open_all();
bool are_open();

}  // namespace phantora::preload
