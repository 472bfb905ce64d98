#include "host_alias.h"

#include <algorithm>

namespace phantora::aten {
namespace {

constexpr int64_t most_pieces = 4096;

// The contiguous pieces of a strided tensor: `bytes` each, at every combination of the remaining dimensions.
struct Pieces {
  struct Dimension {
    int64_t size, stride_bytes;
  };

  Pieces(const Capture& capture, const TensorRecord& t) : bytes(static_cast<int64_t>(c10::elementSize(t.dtype))) {
    auto sizes = capture.sizes(t), strides = capture.strides(t);
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i] > 1 && strides[i] > 0) outer.push_back({sizes[i], strides[i] * bytes});
    }
    std::sort(outer.begin(), outer.end(), [](auto& a, auto& b) { return a.stride_bytes > b.stride_bytes; });
    span = bytes;
    for (const Dimension& d : outer) span += (d.size - 1) * d.stride_bytes;
    while (!outer.empty() && outer.back().stride_bytes == bytes) bytes *= outer.pop_back_val().size;
    for (const Dimension& d : outer) count *= d.size;
    if (t.numel == 0) span = count = 0;
  }

  template <typename Visit>
  void for_each(char* data, Visit&& visit, size_t dimension = 0) const {
    if (count == 0) return;
    if (dimension == outer.size()) return visit(data, static_cast<size_t>(bytes));
    for (int64_t i = 0; i < outer[dimension].size; ++i) {
      for_each(data + i * outer[dimension].stride_bytes, visit, dimension + 1);
    }
  }

  int64_t bytes;
  int64_t count = 1;
  int64_t span;  // from the first byte to the last
  c10::SmallVector<Dimension, 6> outer;
};

}  // namespace

at::Tensor host_alias(const Capture& capture, const TensorRecord& t) {
  Pieces pieces(capture, t);
  c10::Storage storage(c10::Storage::use_byte_size_t(), pieces.span, at::DataPtr(t.data, at::kCPU), nullptr, false);
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CPU), c10::scalarTypeToTypeMeta(t.dtype));
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(capture.sizes(t), capture.strides(t));
  if (t.conjugated) impl->_set_conj(true);
  if (t.negated) impl->_set_neg(true);
  return tensor;
}

bool make_readable(const Capture& capture, const TensorRecord& t) {
  Pieces pieces(capture, t);
  if (values::state(t.data, pieces.span) == values::State::known) return false;
  bool unknown = false;
  pieces.for_each(t.data, [&unknown](char* data, size_t bytes) {
    values::make_readable(data, bytes);
    unknown = unknown || values::state(data, bytes) != values::State::known;
  });
  return unknown;
}

at::Tensor unknown_elements(const Capture& capture, const TensorRecord& t) {
  Pieces pieces(capture, t);
  auto element = static_cast<size_t>(c10::elementSize(t.dtype));
  at::Tensor flags = at::zeros(pieces.span / static_cast<int64_t>(element), at::kBool);
  bool* begin = flags.mutable_data_ptr<bool>();
  pieces.for_each(t.data, [&](char* data, size_t bytes) {
    values::for_each_stretch(data, bytes, [&](size_t offset, size_t length, values::State state) {
      size_t first = (static_cast<size_t>(data - t.data) + offset) / element;
      size_t end = (static_cast<size_t>(data - t.data) + offset + length + element - 1) / element;
      if (state != values::State::known) std::fill(begin + first, begin + end, true);
    });
  });
  return flags.as_strided(capture.sizes(t), capture.strides(t));
}

void mark_elements(const Capture& capture, const TensorRecord& t, const at::Tensor& unknown) {
  Pieces pieces(capture, t);
  auto element = static_cast<size_t>(c10::elementSize(t.dtype));
  at::Tensor flags = at::zeros(pieces.span / static_cast<int64_t>(element), at::kBool);
  flags.as_strided(capture.sizes(t), capture.strides(t)).copy_(unknown);
  const bool* begin = flags.const_data_ptr<bool>();
  pieces.for_each(t.data, [&](char* data, size_t bytes) {
    const bool* at = begin + static_cast<size_t>(data - t.data) / element;
    const bool* end = at + bytes / element;
    while (at < end) {
      const bool* next = std::find(at, end, !*at);
      (*at ? values::mark_tainted : values::mark_known)(t.data + (at - begin) * element, (next - at) * element);
      at = next;
    }
  });
}

void mark(const Capture& capture, const TensorRecord& t, values::State state) {
  Pieces pieces(capture, t);
  if (state == values::State::unknown) {
    if (pieces.count > most_pieces) return values::mark_unknown(t.data, pieces.span);
    return pieces.for_each(t.data, values::mark_unknown);
  }
  if (values::state(t.data, pieces.span) == values::State::known && state == values::State::known) return;
  pieces.for_each(t.data, state == values::State::known ? values::mark_known : values::mark_tainted);
}

}  // namespace phantora::aten
