// A header (u32 magic, u16 version, u16 bytes of the header, u64 bytes of what follows), then entries, each with its
// own header (see Entry) and its payload. Whole binaries may follow one another in one section: we are given the first.
#include "fat_binary.h"

#include <dlfcn.h>

#include <cstdint>
#include <cstring>
#include <optional>

#include "phantora/config.h"

namespace phantora::code {
namespace {

constexpr uint32_t wrapper_magic = 0x466243b1;
constexpr uint32_t binary_magic = 0xba55ed50;
constexpr uint64_t packed_by_lz4 = 0x2000, packed_by_zstd = 0x8000;  // flags
constexpr size_t largest_part_bytes = 1u << 30;

struct Wrapper {
  uint32_t magic, version;
  const void* binary;
  const void* file;
};

struct Header {
  uint32_t magic;
  uint16_t version, header_bytes;
  uint64_t bytes;
};

struct Entry {
  uint16_t kind, attributes;  // kind 1: PTX, 2: cubin
  uint32_t header_bytes;
  uint64_t bytes;  // of the payload, with padding
  uint32_t packed_bytes;
  uint32_t options;
  uint16_t minor, major;
  uint32_t architecture;  // 90: sm_90
  uint32_t name_offset, name_bytes;
  uint64_t flags, reserved;
  uint64_t unpacked_bytes;
};
static_assert(sizeof(Entry) == 64);

template <typename Value>
Value load(const void* p) {
  Value value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

// A block of LZ4: tokens (4 bits of literals, 4 bits of match length), literals, a u16 offset back, longer lengths in
// further bytes.
std::optional<std::string> unpack_lz4(const unsigned char* p, const unsigned char* end, size_t bytes) {
  std::string out;
  out.reserve(bytes);
  auto length = [&](size_t nibble) {
    size_t total = nibble;
    for (bool more = nibble == 15; more && p < end;) {
      total += *p;
      more = *p++ == 255;
    }
    return total;
  };
  while (p < end) {
    unsigned token = *p++;
    size_t literals = length(token >> 4);
    if (literals > static_cast<size_t>(end - p)) return std::nullopt;
    out.append(reinterpret_cast<const char*>(p), literals);
    p += literals;
    if (end - p < 2) break;
    size_t back = load<uint16_t>(p);
    p += 2;
    size_t match = length(token & 15) + 4;
    if (back == 0 || back > out.size() || out.size() + match > bytes) return std::nullopt;
    for (size_t i = 0; i < match; ++i) out.push_back(out[out.size() - back]);
  }
  if (out.size() != bytes) return std::nullopt;
  return out;
}

// With the system's library, which is nearly everywhere (package managers need it).
std::optional<std::string> unpack_zstd(const void* packed, size_t packed_bytes, size_t bytes) {
  using Decompress = size_t (*)(void*, size_t, const void*, size_t);
  static void* library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
  static auto decompress = library ? reinterpret_cast<Decompress>(dlsym(library, "ZSTD_decompress")) : nullptr;
  if (!decompress) return std::nullopt;
  std::string out(bytes, '\0');
  if (decompress(out.data(), bytes, packed, packed_bytes) != bytes) return std::nullopt;
  return out;
}

std::optional<std::string> unpack(const Entry& entry, const char* payload) {
  if (entry.unpacked_bytes > largest_part_bytes) return std::nullopt;
  if (entry.flags & packed_by_zstd) return unpack_zstd(payload, entry.packed_bytes, entry.unpacked_bytes);
  if (entry.flags & packed_by_lz4) {
    auto* begin = reinterpret_cast<const unsigned char*>(payload);
    return unpack_lz4(begin, begin + entry.packed_bytes, entry.unpacked_bytes);
  }
  return std::string(payload, entry.bytes);
}

// Better ones first: cubins, and among them the emulated architecture.
int rank(const Entry& entry) {
  constexpr uint16_t cubin = 2;
  bool ours = entry.architecture == static_cast<uint32_t>(config().cc_major * 10 + config().cc_minor);
  return entry.kind != cubin ? 2 : ours ? 0 : 1;
}

const char* binary_of(const void* image) {
  if (load<uint32_t>(image) != wrapper_magic) return static_cast<const char*>(image);
  return static_cast<const char*>(load<Wrapper>(image).binary);
}

}  // namespace

bool FatBinary::is_one(const void* image) { return load<uint32_t>(binary_of(image)) == binary_magic; }

std::vector<std::string> FatBinary::parts(const void* image) {
  const char* binary = binary_of(image);
  Header header = load<Header>(binary);
  const char* end = binary + header.header_bytes + header.bytes;
  std::vector<std::string> parts;
  int best = 3;  // rank of `parts`
  for (const char* at = binary + header.header_bytes; at + sizeof(Entry) <= end;) {
    Entry entry = load<Entry>(at);
    std::optional<std::string> part;
    if (rank(entry) < best || rank(entry) == 0) part = unpack(entry, at + entry.header_bytes);
    if (part && rank(entry) < best) parts.clear();
    if (part) {
      parts.push_back(std::move(*part));
      best = rank(entry);
    }
    if (entry.header_bytes + entry.bytes == 0) break;
    at += entry.header_bytes + entry.bytes;
  }
  return parts;
}

}  // namespace phantora::code
