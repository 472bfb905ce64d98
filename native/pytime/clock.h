// The rank's virtual clock as Python sees it: the runtime's, once torch has brought the runtime; until then it stands
// still at the start of the job, and only sleeping moves it.
#pragma once
#include <cstdint>

namespace phantora::pytime {

// `epoch_ns`: wall-clock time of virtual time 0.
void start_clock(int64_t epoch_ns);

// False before start_clock, and in forked children: DataLoader workers and the like live in real time.
bool is_virtual();

int64_t monotonic_ns();  // never falls on a thread
int64_t wall_ns();       // since 1970

// Moves the clock of the calling thread.
void sleep_ns(int64_t ns);

}  // namespace phantora::pytime
