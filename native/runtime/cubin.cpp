// Sections of a cubin, for each kernel K: .text.K, .nv.info.K, .nv.shared.K (static shared memory), .nv.constant0.K
// (constants, parameters at their end); .nv.info for all kernels.
//
// An info section is a list of attributes: u8 format, u8 code, then by format: 1: 2 bytes without meaning; 2: a byte,
// one without meaning; 3: a u16; 4: a u16 size and so many bytes.
#include "cubin.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace phantora::code {
namespace {

constexpr uint16_t machine_cuda = 190;

// From sm_90 on the sections of shared memory contain what the system takes for itself.
constexpr std::string_view reserved_shared_symbol = ".nv.reservedSmem.offset0";
constexpr int reserved_shared_bytes = 1024;

enum class Attribute : uint8_t {
  max_threads = 0x05,      // x, y, z
  frame_size = 0x11,       // symbol of the kernel, bytes of its stack
  parameter = 0x17,        // u32 index, u16 ordinal, u16 offset, u32 of which the upper 14 bits are its size
  registers = 0x2f,        // symbol of the kernel, number
  blocks_a_cluster = 0x3d  // x, y, z
};
constexpr uint8_t format_sized = 4;

template <typename Value>
Value load(const char* p) {
  Value value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

template <typename Visit>
void for_each_attribute(std::string_view info, Visit&& visit) {
  while (info.size() >= 4) {
    uint8_t format = static_cast<uint8_t>(info[0]);
    size_t size = format == format_sized ? load<uint16_t>(info.data() + 2) : 0;
    if (size > info.size() - 4) return;
    visit(static_cast<Attribute>(info[1]), info.substr(4, size));
    info.remove_prefix(4 + size);
  }
}

class Elf {
 public:
  explicit Elf(const char* begin) : begin_(begin), header_(load<Elf64_Ehdr>(begin)) {
    for (uint16_t i = 0; i < header_.e_shnum; ++i) {
      sections_.push_back(load<Elf64_Shdr>(begin_ + header_.e_shoff + i * sizeof(Elf64_Shdr)));
    }
    if (header_.e_shstrndx < sections_.size()) names_ = contents(sections_[header_.e_shstrndx]);
    for (const Elf64_Shdr& section : sections_) {
      if (section.sh_type == SHT_SYMTAB && section.sh_link < sections_.size()) read_symbols(section);
    }
  }

  const std::vector<Elf64_Shdr>& sections() const { return sections_; }
  const std::vector<Elf64_Sym>& symbols() const { return symbols_; }
  std::string name(const Elf64_Shdr& section) const { return text(names_, section.sh_name); }
  std::string name(const Elf64_Sym& symbol) const { return text(symbol_names_, symbol.st_name); }
  bool has_symbol(std::string_view wanted) const {
    return std::any_of(symbols_.begin(), symbols_.end(), [&](const Elf64_Sym& s) { return name(s) == wanted; });
  }
  std::string_view contents(const Elf64_Shdr& section) const {
    if (section.sh_type == SHT_NOBITS) return {};
    return {begin_ + section.sh_offset, section.sh_size};
  }

 private:
  static std::string text(std::string_view table, size_t offset) {
    return offset < table.size() ? std::string(table.data() + offset) : "";
  }

  void read_symbols(const Elf64_Shdr& section) {
    std::string_view table = contents(section);
    for (size_t at = 0; at + sizeof(Elf64_Sym) <= table.size(); at += sizeof(Elf64_Sym)) {
      symbols_.push_back(load<Elf64_Sym>(table.data() + at));
    }
    symbol_names_ = contents(sections_[section.sh_link]);
  }

  const char* begin_;
  Elf64_Ehdr header_;
  std::vector<Elf64_Shdr> sections_;
  std::vector<Elf64_Sym> symbols_;
  std::string_view names_, symbol_names_;
};

void read_kernel_info(std::string_view info, KernelCode& kernel) {
  for_each_attribute(info, [&kernel](Attribute attribute, std::string_view value) {
    if (attribute == Attribute::parameter && value.size() >= 12) {
      size_t ordinal = load<uint16_t>(value.data() + 4);
      if (ordinal >= kernel.parameters.size()) kernel.parameters.resize(ordinal + 1);
      kernel.parameters[ordinal] = {load<uint16_t>(value.data() + 6), load<uint32_t>(value.data() + 8) >> 18};
    } else if (attribute == Attribute::max_threads && value.size() >= 12) {
      uint32_t threads = 1;
      for (int i = 0; i < 3; ++i) threads *= load<uint32_t>(value.data() + 4 * i);
      kernel.max_threads = static_cast<int>(std::min<uint32_t>(threads, 1024));
    } else if (attribute == Attribute::blocks_a_cluster && value.size() >= 12) {
      for (int i = 0; i < 3; ++i) kernel.cluster[i] = load<uint32_t>(value.data() + 4 * i);
    }
  });
}

using Kernels = std::map<std::string, KernelCode>;

void read_common_info(const Elf& elf, std::string_view info, Kernels& kernels) {
  for_each_attribute(info, [&](Attribute attribute, std::string_view value) {
    if (value.size() < 8) return;
    uint32_t symbol = load<uint32_t>(value.data());
    auto kernel = symbol < elf.symbols().size() ? kernels.find(elf.name(elf.symbols()[symbol])) : kernels.end();
    if (kernel == kernels.end()) return;
    int number = load<int32_t>(value.data() + 4);
    if (attribute == Attribute::registers) kernel->second.registers = number;
    if (attribute == Attribute::frame_size) kernel->second.local_bytes = number;
  });
}

Kernels kernels_of(const Elf& elf) {
  constexpr std::string_view info = ".nv.info.", shared = ".nv.shared.", constant = ".nv.constant0.";
  Kernels kernels;
  for (const Elf64_Shdr& section : elf.sections()) {
    std::string name = elf.name(section);
    if (name.starts_with(info)) read_kernel_info(elf.contents(section), kernels[name.substr(info.size())]);
  }
  auto find = [&kernels](const std::string& name) {
    auto found = kernels.find(name);
    return found == kernels.end() ? nullptr : &found->second;
  };
  for (const Elf64_Shdr& section : elf.sections()) {
    std::string name = elf.name(section);
    int bytes = static_cast<int>(section.sh_size);
    if (name == ".nv.info") {
      read_common_info(elf, elf.contents(section), kernels);
    } else if (name.starts_with(shared)) {
      bool reserves = bytes >= reserved_shared_bytes && elf.has_symbol(reserved_shared_symbol);
      int own = reserves ? bytes - reserved_shared_bytes : bytes;
      if (KernelCode* kernel = find(name.substr(shared.size()))) kernel->shared_bytes = own;
    } else if (name.starts_with(constant)) {
      if (KernelCode* kernel = find(name.substr(constant.size()))) kernel->constant_bytes = bytes;
    }
  }
  return kernels;
}

}  // namespace

bool Cubin::is_one(const void* image) {
  const char* bytes = static_cast<const char*>(image);
  return std::memcmp(bytes, ELFMAG, SELFMAG) == 0 && load<Elf64_Ehdr>(bytes).e_machine == machine_cuda;
}

void Cubin::read(const char* cubin, Image& image) {
  Elf elf(cubin);
  image.known_ = true;
  image.kernels_.merge(kernels_of(elf));
  for (const Elf64_Sym& symbol : elf.symbols()) {
    if (ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT || symbol.st_shndx >= elf.sections().size()) continue;
    std::string_view contents = elf.contents(elf.sections()[symbol.st_shndx]);
    bool stored = symbol.st_value + symbol.st_size <= contents.size();
    std::string initial(stored ? contents.substr(symbol.st_value, symbol.st_size) : "");
    image.variables_.try_emplace(elf.name(symbol), Variable{symbol.st_size, std::move(initial)});
  }
}

}  // namespace phantora::code
