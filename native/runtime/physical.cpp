#include "physical.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "phantora/memory.h"
#include "phantora/recorder.h"

namespace phantora::physical {

namespace {

// A file holds bytes, then their states, then a card for each granule; all sparse.
constexpr uint64_t states_begin = uint64_t{1} << 46;
constexpr uint64_t cards_begin = uint64_t{1} << 47;
constexpr uint64_t file_bytes = uint64_t{1} << 48;
constexpr uint64_t card_stride = 64;
constexpr char magic[8] = {'p', 'h', 'a', 'n', 't', 'o', 'r', 'a'};

struct MarkedCard {
  char magic[8];
  Card card;
};
static_assert(sizeof(MarkedCard) <= card_stride);

[[noreturn]] void refuse(const std::string& what) {
  fail("the host gives no " + what + ": " + std::strerror(errno),
       "it costs no memory where nothing is touched; look at `ulimit -a` (file size, open files, virtual memory)");
}

int make_file() {
  int file = memfd_create("phantora-device", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(file_bytes)) != 0)
    refuse("sparse file for emulated device memory");
  return file;
}

int own_file() {
  static const int file = make_file();
  return file;
}

uint64_t card_offset(uint64_t offset) { return cards_begin + offset / memory::granule_bytes * card_stride; }

void* map_part(const Extent& extent, uint64_t begin, void* at, int protection) {
  int flags = MAP_SHARED | MAP_NORESERVE | (at ? MAP_FIXED : 0);
  void* mapped = mmap(at, extent.bytes, protection, flags, extent.file, static_cast<off_t>(begin + extent.offset));
  if (mapped == MAP_FAILED) refuse("address space for " + std::to_string(extent.bytes) + " bytes of emulated memory");
  madvise(mapped, extent.bytes, MADV_DONTDUMP);
  return mapped;
}

void write_card(const Extent& extent, const Card& card) {
  MarkedCard marked{};
  std::memcpy(marked.magic, magic, sizeof magic);
  marked.card = card;
  ssize_t written = pwrite(extent.file, &marked, sizeof marked, static_cast<off_t>(card_offset(extent.offset)));
  if (written != static_cast<ssize_t>(sizeof marked)) refuse("room to describe emulated memory to other processes");
}

// Files of other processes, each held once.
int held_file(int descriptor) {
  static std::mutex mutex;
  static auto* files = new std::map<std::pair<dev_t, ino_t>, int>;
  struct stat status;
  if (fstat(descriptor, &status) != 0) refuse("look at shared device memory");
  std::lock_guard lock(mutex);
  auto [slot, is_new] = files->try_emplace({status.st_dev, status.st_ino}, -1);
  if (is_new) slot->second = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (slot->second < 0) refuse("file descriptor for shared device memory");
  return slot->second;
}

std::optional<Import> read_card(int descriptor, uint64_t offset) {
  MarkedCard marked{};
  ssize_t got = pread(descriptor, &marked, sizeof marked, static_cast<off_t>(card_offset(offset)));
  if (got != static_cast<ssize_t>(sizeof marked) || std::memcmp(marked.magic, magic, sizeof magic) != 0) return {};
  return Import{{held_file(descriptor), offset, marked.card.bytes}, marked.card};
}

}  // namespace

Extent take(size_t bytes) {
  static std::mutex mutex;
  static uint64_t end = 0;  // places are never used twice: there are 2^46 bytes of them
  std::lock_guard lock(mutex);
  return {own_file(), std::exchange(end, end + bytes), bytes};
}

void give_back(const Extent& extent) {
  fallocate(extent.file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(extent.offset),
            static_cast<off_t>(extent.bytes));
}

void* map(const Extent& extent, void* at, bool accessible) {
  return map_part(extent, 0, at, accessible ? PROT_READ | PROT_WRITE : PROT_NONE);
}

uint8_t* map_states(const Extent& extent) {
  return static_cast<uint8_t*>(map_part(extent, states_begin, nullptr, PROT_READ | PROT_WRITE));
}

void unmap_states(const Extent& extent, uint8_t* states) { munmap(states, extent.bytes); }

// Opened anew, so that its position is its own; the position says which stretch is meant.
int export_descriptor(const Extent& extent, const Card& card) {
  write_card(extent, card);
  int descriptor = open(("/proc/self/fd/" + std::to_string(extent.file)).c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0 || lseek(descriptor, static_cast<off_t>(extent.offset), SEEK_SET) < 0) {
    refuse("file descriptor for shared device memory");
  }
  return descriptor;
}

Place publish(const Extent& extent, const Card& card) {
  write_card(extent, card);
  return {getpid(), extent.file, extent.offset};
}

void withdraw(const Extent& extent) {
  fallocate(extent.file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(card_offset(extent.offset)),
            card_stride);
}

std::optional<Import> import_descriptor(int descriptor) {
  off_t offset = lseek(descriptor, 0, SEEK_CUR);
  return offset < 0 ? std::nullopt : read_card(descriptor, static_cast<uint64_t>(offset));
}

std::optional<Import> import_place(const Place& place) {
  std::string path = "/proc/" + std::to_string(place.pid) + "/fd/" + std::to_string(place.file);
  int descriptor = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return {};
  std::optional<Import> found = read_card(descriptor, place.offset);
  close(descriptor);
  return found;
}

}  // namespace phantora::physical
