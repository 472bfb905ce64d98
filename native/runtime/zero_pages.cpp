#include "zero_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

namespace phantora {

namespace {

// A mapping is all of one sort: a page of a file is removed from the file, a private one from the mapping.
bool give_back(void* begin, size_t bytes) {
  return madvise(begin, bytes, MADV_REMOVE) == 0 || madvise(begin, bytes, MADV_DONTNEED) == 0;
}

}  // namespace

void zero_pages(void* p, size_t bytes) {
  const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  uintptr_t address = reinterpret_cast<uintptr_t>(p);
  uintptr_t begin = (address + page - 1) / page * page;
  uintptr_t end = (address + bytes) / page * page;
  if (begin >= end || !give_back(reinterpret_cast<void*>(begin), end - begin)) {
    std::memset(p, 0, bytes);
    return;
  }
  std::memset(p, 0, begin - address);
  std::memset(reinterpret_cast<void*>(end), 0, address + bytes - end);
}

}  // namespace phantora
