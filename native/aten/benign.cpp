#include "benign.h"

#include <ATen/Functions.h>

#include "host_alias.h"
#include "phantora/config.h"

namespace phantora::aten {
namespace {

using Place = TensorRecord::Place;

// The records that an operator returns, in order, be they fresh or an argument.
c10::SmallVector<TensorRecord, 3> outputs(const Operator& op, const Capture& capture) {
  c10::SmallVector<TensorRecord, 3> found;
  size_t next_fresh = 0;
  for (const ReturnInfo& result : op.returns) {
    if (result.argument < 0) {
      if (next_fresh < capture.fresh.size()) found.push_back(capture.fresh[next_fresh++]);
      continue;
    }
    size_t at = 0;
    for (int i = 0; i < result.argument; ++i) at += capture.arguments[i].count;
    if (at < capture.tensors.size()) found.push_back(capture.tensors[at]);
  }
  return found;
}

// The argument "dim", which counts from the end if negative; the last one if there is none.
int64_t dimension(const Operator& op, const Capture& capture, int64_t rank) {
  const auto& schema = op.handle.schema().arguments();
  size_t value = 0;
  for (size_t i = 0; i < schema.size(); ++i) {
    if (capture.arguments[i].kind != ArgumentRecord::Kind::value) continue;
    const c10::IValue& candidate = capture.values[value++];
    if (schema[i].name() != "dim" || !candidate.isInt()) continue;
    return candidate.toInt() < 0 ? candidate.toInt() + rank : candidate.toInt();
  }
  return rank - 1;
}

at::Tensor counting(int64_t count, const at::Tensor& like) {
  return at::arange(count, like.options().dtype(at::kLong).device(at::kCPU));
}

// Row r picks r·k, r·k + 1, … of the candidates, round and round: distinct within a row, even over all rows.
void fill_balanced(at::Tensor indices, int64_t dim, int64_t candidates) {
  if (indices.dim() == 0 || candidates == 0) return static_cast<void>(indices.zero_());
  at::Tensor rows = indices.movedim(dim, -1);
  at::Tensor numbers = counting(indices.numel(), indices).remainder(candidates);
  rows.copy_(numbers.view(rows.sizes()));
}

void fill_permutation(at::Tensor indices, int64_t dim) {
  if (indices.dim() == 0) return static_cast<void>(indices.zero_());
  at::Tensor rows = indices.movedim(dim, -1);
  rows.copy_(counting(rows.size(-1), indices).expand(rows.sizes()));
}

// Writes over one output what `benign` says; -1 if it says nothing.
int softened_output(const Operator& op) {
  switch (op.benign) {
    case Benign::all_true:
    case Benign::all_false:
      return 0;
    case Benign::balanced:
    case Benign::permutation:
      return 1;
    default:
      return -1;
  }
}

void fill(const Operator& op, const Capture& capture, const TensorRecord& output) {
  at::Tensor tensor = host_alias(capture, output);
  const TensorRecord& input = capture.tensors[0];
  int64_t dim = dimension(op, capture, input.rank);
  switch (op.benign) {
    case Benign::all_true:
      tensor.fill_(1);
      break;
    case Benign::all_false:
      tensor.fill_(0);
      break;
    case Benign::balanced:
      fill_balanced(tensor, dim, input.rank ? capture.sizes(input)[dim] : 1);
      break;
    case Benign::permutation:
      fill_permutation(tensor, dim);
      break;
    case Benign::zeros:
      break;
  }
}

void make_finite(const Capture& capture, const TensorRecord& t) {
  if (t.place != Place::device || !(c10::isFloatingType(t.dtype) || c10::isComplexType(t.dtype)) || t.numel == 0)
    return;
  at::Tensor tensor = host_alias(capture, t);
  if (c10::isFloat8Type(t.dtype) || c10::isComplexType(t.dtype)) {
    at::Tensor wide = tensor.to(c10::isComplexType(t.dtype) ? at::kComplexDouble : at::kFloat);
    tensor.copy_(at::where(at::isfinite(wide), wide, at::zeros({}, wide.options())));
    return;
  }
  at::nan_to_num_(tensor, 0.0, 0.0, 0.0);
}

}  // namespace

void soften_outputs(const Operator& op, const Capture& capture) {
  for (const TensorRecord& t : capture.fresh) make_finite(capture, t);
  for (const TensorRecord& t : capture.tensors) {
    if (t.write) make_finite(capture, t);
  }
  int which = softened_output(op);
  auto records = outputs(op, capture);
  if (which >= 0 && which < static_cast<int>(records.size())) fill(op, capture, records[which]);
}

void store_benign_outputs(const Operator& op, const Capture& capture) {
  int which = softened_output(op);
  auto records = outputs(op, capture);
  if (which < 0 || which >= static_cast<int>(records.size()) || records[which].place != Place::device) return;
  if (records[which].bytes() > static_cast<int64_t>(config().value_copy_limit_bytes)) return;
  fill(op, capture, records[which]);
  mark(capture, records[which], values::State::tainted);
}

}  // namespace phantora::aten
