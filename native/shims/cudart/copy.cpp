// cudaMemcpy* and cudaMemset*.
#include "cudart/error.h"
#include "phantora/memory.h"
#include "phantora/transfer.h"

namespace phantora::cudart {

namespace {

using transfer::Rows;
using transfer::Wait;

// A direction that contradicts the addresses is an error; `by_address`, and pinned memory, fit everything.
bool fits(CopyKind kind, const void* dst, const void* src) {
  auto is = [](const void* pointer, memory::Kind wanted) { return memory::find(pointer).kind == wanted; };
  bool to_device = kind == CopyKind::host_to_device || kind == CopyKind::device_to_device;
  bool from_device = kind == CopyKind::device_to_host || kind == CopyKind::device_to_device;
  if (kind == CopyKind::by_address) return true;
  if (is(dst, to_device ? memory::Kind::plain : memory::Kind::device)) return false;
  return !is(src, from_device ? memory::Kind::plain : memory::Kind::device);
}

Status copy(void* dst, const void* src, const Rows& rows, CopyKind kind, Stream stream, Wait wait) {
  if (kind < CopyKind::host_to_host || kind > CopyKind::by_address) return done(Status::invalid_memcpy_direction);
  if (rows.width == 0 || rows.height == 0) return Status::success;
  if (!dst || !src || !fits(kind, dst, src)) return done(Status::invalid_value);
  std::optional<StreamId> id = streams::enter(stream);
  if (!id) return done(Status::invalid_resource_handle);
  transfer::copy(*id, dst, src, rows, wait);
  return Status::success;
}

Status copy(void* dst, const void* src, size_t bytes, CopyKind kind, Stream stream, Wait wait) {
  return copy(dst, src, Rows{bytes, 1, bytes, bytes}, kind, stream, wait);
}

Status set(void* dst, int value, const Rows& rows, Stream stream) {
  if (rows.width == 0 || rows.height == 0) return Status::success;
  if (!dst || !transfer::is_device(dst)) return done(Status::invalid_value);
  std::optional<StreamId> id = streams::enter(stream);
  if (!id) return done(Status::invalid_resource_handle);
  unsigned char byte = static_cast<unsigned char>(value);
  transfer::set(*id, dst, &byte, 1, rows);
  return Status::success;
}

}  // namespace

extern "C" {

Status cudaMemcpy(void* dst, const void* src, size_t bytes, CopyKind kind) {
  return copy(dst, src, bytes, kind, nullptr, Wait::always);
}

Status cudaMemcpyAsync(void* dst, const void* src, size_t bytes, CopyKind kind, Stream stream) {
  return copy(dst, src, bytes, kind, stream, Wait::as_needed);
}

Status cudaMemcpyPeer(void* dst, int, const void* src, int, size_t bytes) {
  return copy(dst, src, bytes, CopyKind::by_address, nullptr, Wait::always);
}

Status cudaMemcpyPeerAsync(void* dst, int, const void* src, int, size_t bytes, Stream stream) {
  return copy(dst, src, bytes, CopyKind::by_address, stream, Wait::as_needed);
}

Status cudaMemcpy2D(void* dst, size_t dst_pitch, const void* src, size_t src_pitch, size_t width, size_t height,
                    CopyKind kind) {
  return copy(dst, src, Rows{width, height, dst_pitch, src_pitch}, kind, nullptr, Wait::always);
}

Status cudaMemcpy2DAsync(void* dst, size_t dst_pitch, const void* src, size_t src_pitch, size_t width, size_t height,
                         CopyKind kind, Stream stream) {
  return copy(dst, src, Rows{width, height, dst_pitch, src_pitch}, kind, stream, Wait::as_needed);
}

Status cudaMemset(void* dst, int value, size_t bytes) { return set(dst, value, Rows{bytes, 1, bytes, 0}, nullptr); }

Status cudaMemsetAsync(void* dst, int value, size_t bytes, Stream stream) {
  return set(dst, value, Rows{bytes, 1, bytes, 0}, stream);
}

Status cudaMemset2D(void* dst, size_t pitch, int value, size_t width, size_t height) {
  return set(dst, value, Rows{width, height, pitch, 0}, nullptr);
}

Status cudaMemset2DAsync(void* dst, size_t pitch, int value, size_t width, size_t height, Stream stream) {
  return set(dst, value, Rows{width, height, pitch, 0}, stream);
}

}  // extern "C"

}  // namespace phantora::cudart
