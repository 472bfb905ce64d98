// The clocks of a program that is no Python's, when `phantora run --native-clock` asks for it.
#pragma once
#include <stdint.h>
#include <time.h>

namespace phantora::preload {

// Whether the code at `caller` reads virtual time; then *now_ns is what the clock shows, since its own zero.
bool reads_native_clock(clockid_t clock, const void* caller, int64_t* now_ns);

}  // namespace phantora::preload
