#include "phantora/transfer.h"

#include <cstring>
#include <string>
#include <string_view>

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

constexpr size_t staged_at_once_bytes = 64u << 10;  // from pageable memory: such a copy does not wait for the stream

struct Route {
  const char* kind;
  bool pageable;  // the host's side is memory that the device cannot reach

  Route(const memory::Region& dst, const memory::Region& src)
      : kind(copy_kind(dst, src)),
        pageable((is("h2d") && src.kind == Kind::plain) || (is("d2h") && dst.kind == Kind::plain)) {}

  bool is(std::string_view other) const { return kind == other; }

  // What CUDA documents as the synchronisation of its calls. Where it says that the host goes on when the last piece of
  // a pageable source has been staged, we let it wait for the end of the copy.
  bool holds_host(size_t bytes, Wait wait) const {
    if (is("d2d") || is("p2p")) return false;
    if (wait == Wait::always || is("h2h")) return true;
    return pageable && (is("d2h") || bytes > staged_at_once_bytes);
  }
};

void issue_node(StreamId stream, const char* kernel, const char* kind, size_t bytes, bool pageable) {
  Launch node;
  node.kernel = kernel;
  node.copy_kind = kind;
  node.copy_bytes = bytes;
  node.copy_is_pageable = pageable;
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
  Route route(memory::find(dst), memory::find(src));
  size_t bytes = rows.width * rows.height;
  issue_node(stream, "memcpy", route.kind, bytes, route.pageable);
  copy_values(stream, dst, src, rows);
  if (route.holds_host(bytes, wait) && !captures::active(stream)) streams::synchronize(stream);
}

void set(StreamId stream, void* dst, const void* pattern, size_t pattern_bytes, const Rows& rows) {
  if (rows.width == 0 || rows.height == 0) return;
  issue_node(stream, "memset", "memset", rows.width * rows.height, /*pageable=*/false);
  std::string text(static_cast<const char*>(pattern), pattern_bytes);
  bool dense = rows.height == 1 || rows.dst_pitch == rows.width;
  if (dense) return set_values(stream, static_cast<char*>(dst), text, rows.width * rows.height);
  for (size_t row = 0; row < rows.height; ++row) {
    set_values(stream, static_cast<char*>(dst) + row * rows.dst_pitch, text, rows.width);
  }
}

bool is_device(const void* pointer) { return memory::find(pointer).kind != Kind::plain; }

}  // namespace phantora::transfer
