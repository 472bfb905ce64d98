#include "elf_file.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace phantora::preload {

namespace {

// A file mapped for reading; every access is checked against its size.
class Mapping {
 public:
  explicit Mapping(const char* path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    struct stat status;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
      size_ = static_cast<size_t>(status.st_size);
      data_ = static_cast<const char*>(mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0));
      if (data_ == MAP_FAILED) data_ = nullptr;
    }
    close(fd);
  }
  ~Mapping() {
    if (data_) munmap(const_cast<char*>(data_), size_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  template <typename Entry>
  const Entry* at(uint64_t offset, uint64_t count = 1) const {
    if (!data_ || offset > size_ || count > (size_ - offset) / sizeof(Entry)) return nullptr;
    return reinterpret_cast<const Entry*>(data_ + offset);
  }

  const char* text_at(uint64_t offset) const {
    if (!data_ || offset >= size_) return nullptr;
    return memchr(data_ + offset, 0, size_ - offset) ? data_ + offset : nullptr;
  }

 private:
  const char* data_ = nullptr;
  size_t size_ = 0;
};

// Program headers and what they map.
class Program {
 public:
  explicit Program(const Mapping& file) : file_(file) {
    const auto* header = file.at<Elf64_Ehdr>(0);
    if (!header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return;
    if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB) return;
    headers_ = file.at<Elf64_Phdr>(header->e_phoff, header->e_phnum);
    count_ = headers_ ? header->e_phnum : 0;
  }

  const Elf64_Phdr* dynamic() const {
    for (unsigned i = 0; i < count_; ++i) {
      if (headers_[i].p_type == PT_DYNAMIC) return &headers_[i];
    }
    return nullptr;
  }

  // File offset of a virtual address, or the largest number.
  uint64_t offset_of(uint64_t address) const {
    for (unsigned i = 0; i < count_; ++i) {
      const Elf64_Phdr& header = headers_[i];
      bool inside = address >= header.p_vaddr && address - header.p_vaddr < header.p_filesz;
      if (header.p_type == PT_LOAD && inside) return address - header.p_vaddr + header.p_offset;
    }
    return UINT64_MAX;
  }

 private:
  const Mapping& file_;
  const Elf64_Phdr* headers_ = nullptr;
  unsigned count_ = 0;
};

}  // namespace

bool any_needed(const char* path, bool (*visit)(const char*, void*), void* context) {
  Mapping file(path);
  Program program(file);
  const Elf64_Phdr* segment = program.dynamic();
  if (!segment) return false;
  uint64_t count = segment->p_filesz / sizeof(Elf64_Dyn);
  const auto* entries = file.at<Elf64_Dyn>(segment->p_offset, count);
  if (!entries) return false;
  uint64_t names = UINT64_MAX;
  for (uint64_t i = 0; i < count; ++i) {
    if (entries[i].d_tag == DT_STRTAB) names = program.offset_of(entries[i].d_un.d_ptr);
  }
  if (names == UINT64_MAX) return false;
  for (uint64_t i = 0; i < count && entries[i].d_tag != DT_NULL; ++i) {
    if (entries[i].d_tag != DT_NEEDED) continue;
    const char* name = file.text_at(names + entries[i].d_un.d_val);
    if (name && visit(name, context)) return true;
  }
  return false;
}

}  // namespace phantora::preload
