// Reads a value that nothing computes, at first with known ones in between, then in a loop that waits for it.
#include <cstring>

#include "phantora/memory.h"
#include "phantora/values.h"

using namespace phantora;

int main() {
  char* device = static_cast<char*>(memory::allocate(0, 1 << 20));
  char host[8];
  for (int i = 0; i < 500; ++i) {
    values::copy(0, device, "known...", 8);
    values::copy(0, host, device, 8);
    values::copy(0, host, device + 8, 8);
  }
  for (int i = 0; i < 1000; ++i) values::copy(0, host, device + 8, 8);
  return 0;
}
