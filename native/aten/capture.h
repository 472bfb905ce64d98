// An operator's arguments as they were when it was called: enough to describe it, and to compute it later.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>
#include <c10/util/SmallVector.h>

#include <cstdint>

#include "operator.h"
#include "phantora/wire.h"

namespace phantora::aten {

// A tensor without its storage: device memory is addressed, never kept alive.
struct TensorRecord {
  enum class Place : uint8_t { absent, device, host, other };

  char* data = nullptr;
  int64_t numel = 0;
  uint32_t shape_at = 0;  // in Capture::shapes: sizes, then strides
  uint16_t rank = 0;
  at::ScalarType dtype = at::ScalarType::Undefined;
  Place place = Place::absent;
  bool write = false;
  bool unread = false;  // only written, or multiplied by zero
  bool conjugated = false;
  bool negated = false;

  int64_t bytes() const { return numel * static_cast<int64_t>(c10::elementSize(dtype)); }
};

// What was on the stack at an argument's place.
struct ArgumentRecord {
  enum class Kind : uint8_t { value, tensor, list, optional_list };
  Kind kind = Kind::value;
  uint32_t count = 0;  // tensors of a list
};

// Fits on the C++ stack for nearly every call; only lists of tensors make it allocate.
class Capture {
 public:
  Capture(const Operator& op, const torch::jit::Stack& stack);

  // Takes over what the call made of written arguments (out= may be resized), and the tensors that it returned.
  void add_returns(const Operator& op, const torch::jit::Stack& stack);

  uint64_t hash() const { return hash_; }
  int64_t bytes() const { return bytes_; }     // of all tensors
  bool strided() const { return strided_; }    // all tensors are plain ones that we can address
  bool outputs_apart() const;                  // nothing that is written shares memory with what is read
  bool integral() const { return integral_; }  // no floating point or complex tensor among them

  c10::ArrayRef<int64_t> sizes(const TensorRecord& t) const { return {&shapes[t.shape_at], t.rank}; }
  c10::ArrayRef<int64_t> strides(const TensorRecord& t) const { return {&shapes[t.shape_at] + t.rank, t.rank}; }

  // The pairs "op", "tensors", "scalars" of a signature.
  static constexpr uint32_t description_pairs = 3;
  void describe(const Operator& op, wire::Pack& pack) const;

  // For computing later: nothing that the caller may change meanwhile is shared.
  void detach_from_caller();

  c10::SmallVector<TensorRecord, 6> tensors;  // of the arguments, lists flattened
  c10::SmallVector<TensorRecord, 3> fresh;    // returned and not an argument
  c10::SmallVector<ArgumentRecord, 12> arguments;
  c10::SmallVector<c10::IValue, 8> values;       // arguments that are no tensors
  c10::SmallVector<at::Tensor, 1> host_tensors;  // those with Place::host, in order
  c10::SmallVector<int64_t, 40> shapes;

 private:
  void add(const Operator& op, size_t index, const c10::IValue& value);
  TensorRecord record(const at::Tensor& tensor);
  void add_tensor(const at::Tensor& tensor, bool write, bool unread);
  void account(const TensorRecord& t);
  void mix(uint64_t word) { hash_ = (hash_ ^ word) * 0x9e3779b97f4a7c15u, hash_ ^= hash_ >> 29; }
  void mix_value(const c10::IValue& value, bool magnitude);

  uint64_t hash_;
  int64_t bytes_ = 0;
  bool strided_ = true;
  bool integral_ = true;
  bool ignores_self_;
  bool first_step_;
  bool training_;
};

}  // namespace phantora::aten
