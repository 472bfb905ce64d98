#include "phantora/transfer.h"

#include <cstring>
#include <string>

#include "phantora/capture.h"
#include "phantora/config.h"
#include "phantora/launch.h"
#include "phantora/memory.h"
#include "phantora/values.h"

namespace phantora::transfer {

namespace {

using memory::Kind;

bool on_device(Kind kind) { return kind == Kind::device || kind == Kind::managed; }

const char* copy_kind(const memory::Region& dst, const memory::Region& src) {
  if (on_device(dst.kind)) {
    if (!on_device(src.kind)) return "h2d";
    return dst.device == src.device ? "d2d" : "p2p";
  }
  return on_device(src.kind) ? "d2h" : "h2h";
}

void issue_node(StreamId stream, const char* kind, size_t bytes) {
  Launch node;
  node.kernel = std::strcmp(kind, "memset") == 0 ? "memset" : "memcpy";
  node.copy_kind = kind;
  node.copy_bytes = bytes;
  launch(stream, node);
}

void copy_values(StreamId stream, void* dst, const void* src, const Rows& rows) {
  bool dense = rows.height == 1 || (rows.dst_pitch == rows.width && rows.src_pitch == rows.width);
  if (dense) return values::copy(stream, dst, src, rows.width * rows.height);
  for (size_t row = 0; row < rows.height; ++row) {
    values::copy(stream, static_cast<char*>(dst) + row * rows.dst_pitch,
                 static_cast<const char*>(src) + row * rows.src_pitch, rows.width);
  }
}

void set_values(StreamId stream, char* dst, const std::string& pattern, size_t bytes) {
  bool one_byte = pattern.find_first_not_of(pattern[0]) == std::string::npos;
  if (one_byte) return values::set(stream, dst, static_cast<unsigned char>(pattern[0]), bytes);
  values::submit(stream, [=] {
    if (bytes > config().value_copy_limit_bytes) return values::mark_unknown(dst, bytes);
    for (size_t at = 0; at < bytes; at += pattern.size()) std::memcpy(dst + at, pattern.data(), pattern.size());
    values::mark_known(dst, bytes);
  });
}

}  // namespace

void copy(StreamId stream, void* dst, const void* src, const Rows& rows, Wait wait) {
  if (rows.width == 0 || rows.height == 0) return;
  memory::Region to = memory::find(dst);
  const char* kind = copy_kind(to, memory::find(src));
  issue_node(stream, kind, rows.width * rows.height);
  copy_values(stream, dst, src, rows);
  bool waits =
      wait == Wait::always ? std::strcmp(kind, "d2d") != 0 && std::strcmp(kind, "p2p") != 0 : to.kind == Kind::plain;
  if (waits && !captures::active(stream)) streams::synchronize(stream);
}

void set(StreamId stream, void* dst, const void* pattern, size_t pattern_bytes, const Rows& rows) {
  if (rows.width == 0 || rows.height == 0) return;
  issue_node(stream, "memset", rows.width * rows.height);
  std::string text(static_cast<const char*>(pattern), pattern_bytes);
  bool dense = rows.height == 1 || rows.dst_pitch == rows.width;
  if (dense) return set_values(stream, static_cast<char*>(dst), text, rows.width * rows.height);
  for (size_t row = 0; row < rows.height; ++row) {
    set_values(stream, static_cast<char*>(dst) + row * rows.dst_pitch, text, rows.width);
  }
}

bool is_device(const void* pointer) { return memory::find(pointer).kind != Kind::plain; }

}  // namespace phantora::transfer
