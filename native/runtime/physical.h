// Device memory apart from addresses: stretches of a sparse file, so that any number of addresses, in every process
// that holds the file, show the same bytes. Costs host memory only where it is touched.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>

namespace phantora::physical {

// What a process that is handed a stretch needs to know of it.
struct Card {
  uint64_t bytes = 0;
  int32_t node = 0;
  int32_t device = 0;  // physical ordinal on that node
  int32_t rank = 0;    // whose process has the file
  uint32_t handle_types = 0;
  uint8_t compression = 0;
  uint8_t rdma_capable = 0;
  uint16_t usage = 0;
};

struct Extent {
  int file = -1;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

Extent take(size_t bytes);             // of this process's own file; a multiple of 2 MiB
void give_back(const Extent& extent);  // the bytes are gone

// Shows it at `at`, in place of what is mapped there (null: anywhere).
void* map(const Extent& extent, void* at, bool accessible);
// Where the state of each byte is kept, for all who share it: mapped until unmap_states().
uint8_t* map_states(const Extent& extent);
void unmap_states(const Extent& extent, uint8_t* states);

// A file descriptor that stands for this very stretch in other processes; the caller closes it.
int export_descriptor(const Extent& extent, const Card& card);
// The file that holds it and the place in it, for processes that find the file by way of this one.
struct Place {
  int32_t pid;
  int32_t file;
  uint64_t offset;
};
Place publish(const Extent& extent, const Card& card);
void withdraw(const Extent& extent);  // nobody finds it any more; those who have it keep it

struct Import {
  Extent extent;
  Card card;
};
// Nothing: not one of ours. Descriptors of the same file are kept once, and for good.
std::optional<Import> import_descriptor(int descriptor);
std::optional<Import> import_place(const Place& place);

}  // namespace phantora::physical
