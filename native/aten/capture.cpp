#include "capture.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <functional>

#include "dtype_name.h"

namespace phantora::aten {
namespace {

using Place = TensorRecord::Place;
using Kind = ArgumentRecord::Kind;

bool is_optional_tensor_list(const c10::IValue& value) {
  if (!value.isList()) return false;
  auto type = value.toListRef().empty() ? value.toList().elementType() : c10::TypePtr();
  if (type) return type->isSubtypeOf(*c10::OptionalType::ofTensor());
  const auto& items = value.toListRef();
  return std::all_of(items.begin(), items.end(), [](const c10::IValue& i) { return i.isTensor() || i.isNone(); });
}

// Sizes of a kernel's work follow from shapes; of a plain number it matters at most whether the work is skipped.
template <typename Number>
int64_t magnitude_of(Number number) {
  return number == Number(0) ? 0 : number == Number(1) ? 1 : 2;
}

void pack_value(const c10::IValue& value, bool magnitude, wire::Pack& pack) {
  if (value.isBool()) {
    pack.boolean(value.toBool());
  } else if (value.isInt()) {
    pack.integer(magnitude ? magnitude_of(value.toInt()) : value.toInt());
  } else if (value.isDouble()) {
    pack.real(static_cast<double>(magnitude_of(value.toDouble())));
  } else if (value.isString()) {
    pack.text(value.toStringRef());
  } else if (value.isIntList()) {
    auto list = value.toIntVector();
    pack.array(static_cast<uint32_t>(list.size()));
    for (int64_t item : list) pack.integer(item);
  } else if (value.isBoolList()) {
    auto list = value.toBoolList();
    pack.array(static_cast<uint32_t>(list.size()));
    for (bool item : list) pack.boolean(item);
  } else {
    pack.nil();
  }
}

void pack_tensor(const Capture& capture, const TensorRecord& t, wire::Pack& pack) {
  pack.array(4).text(t.write ? "mut" : "in").text(dtype_name(t.dtype));
  for (auto list : {capture.sizes(t), capture.strides(t)}) {
    pack.array(static_cast<uint32_t>(list.size()));
    for (int64_t item : list) pack.integer(item);
  }
}

}  // namespace

Capture::Capture(const Operator& op, const torch::jit::Stack& stack) : hash_(op.hash) {
  const c10::IValue* first = stack.data() + stack.size() - op.arguments.size();
  ignores_self_ = op.beta >= 0 && first[op.beta].isScalar() && first[op.beta].toScalar().equal(0);
  first_step_ = op.first_step >= 0 && first[op.first_step].toBool();
  training_ = op.training < 0 || first[op.training].toBool();
  for (size_t i = 0; i < op.arguments.size(); ++i) add(op, i, first[i]);
}

void Capture::add(const Operator& op, size_t index, const c10::IValue& value) {
  const ArgumentInfo& info = op.arguments[index];
  bool write = info.write || (info.statistic && training_);
  bool unread = info.out || (info.scaled_by_beta && ignores_self_) || (info.begun && first_step_);
  if (value.isTensor()) {
    add_tensor(value.toTensor(), write, unread);
    arguments.push_back({Kind::tensor, 1});
  } else if (value.isTensorList()) {
    auto list = value.toTensorList();
    mix(list.size());
    for (const at::Tensor& tensor : list) add_tensor(tensor, write, unread);
    arguments.push_back({Kind::list, static_cast<uint32_t>(list.size())});
  } else if (is_optional_tensor_list(value)) {
    const auto& list = value.toListRef();
    mix(list.size());
    for (const c10::IValue& item : list) add_tensor(item.isNone() ? at::Tensor() : item.toTensor(), write, unread);
    arguments.push_back({Kind::optional_list, static_cast<uint32_t>(list.size())});
  } else {
    mix_value(value, info.magnitude);
    values.push_back(value);
    arguments.push_back({});
  }
}

void Capture::mix_value(const c10::IValue& value, bool magnitude) {
  if (value.isInt()) {
    mix(magnitude ? magnitude_of(value.toInt()) : value.toInt());
  } else if (value.isBool()) {
    mix(value.toBool());
  } else if (value.isDouble()) {
    mix(magnitude_of(value.toDouble()));
  } else if (value.isIntList()) {
    const auto& list = value.toIntList();
    mix(list.size());
    for (int64_t item : list) mix(item);
  } else if (value.isBoolList()) {
    const auto& list = value.toBoolList();
    for (bool item : list) mix(item + 2);
  } else if (value.isString()) {
    mix(std::hash<std::string_view>()(value.toStringRef()));
  } else {
    mix(value.isNone() ? 7 : 8);
  }
}

TensorRecord Capture::record(const at::Tensor& tensor) {
  TensorRecord t;
  if (!tensor.defined()) return t;
  const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  t.dtype = c10::typeMetaToScalarType(impl->dtype());
  t.rank = static_cast<uint16_t>(impl->dim());
  t.numel = impl->numel();
  t.shape_at = static_cast<uint32_t>(shapes.size());
  shapes.append(impl->sizes().begin(), impl->sizes().end());
  if (impl->layout() != at::kStrided || !impl->has_storage() || impl->is_python_dispatch()) {
    shapes.append(t.rank, 0);
    t.place = Place::other;
    return t;
  }
  shapes.append(impl->strides().begin(), impl->strides().end());
  t.conjugated = tensor.is_conj();
  t.negated = tensor.is_neg();
  auto base = static_cast<const char*>(impl->unsafe_storage().data_ptr().get());
  if (base) t.data = const_cast<char*>(base) + impl->storage_offset() * static_cast<int64_t>(impl->itemsize());
  t.place = impl->is_cuda() ? Place::device : impl->is_cpu() ? Place::host : Place::other;
  return t;
}

void Capture::account(const TensorRecord& t) {
  bytes_ += t.place == Place::absent ? 0 : t.bytes();
  strided_ = strided_ && t.place != Place::other;
  integral_ = integral_ && (t.place == Place::absent || c10::isIntegralType(t.dtype, true));
}

void Capture::add_tensor(const at::Tensor& tensor, bool write, bool unread) {
  TensorRecord t = record(tensor);
  t.write = write;
  t.unread = unread;
  if (t.place == Place::host) host_tensors.push_back(tensor);
  mix(static_cast<uint64_t>(t.dtype) << 16 | t.rank << 1 | t.write);
  for (size_t i = t.shape_at; i < shapes.size(); ++i) mix(shapes[i]);
  account(t);
  tensors.push_back(t);
}

void Capture::add_returns(const Operator& op, const torch::jit::Stack& stack) {
  const c10::IValue* first = stack.data() + stack.size() - op.returns.size();
  auto add_fresh = [this](const at::Tensor& tensor) {
    fresh.push_back(record(tensor));
    account(fresh.back());
  };
  for (size_t i = 0; i < op.returns.size(); ++i) {
    if (int argument = op.returns[i].argument; argument >= 0) {
      if (!first[i].isTensor()) continue;
      size_t at = 0;
      for (int j = 0; j < argument; ++j) at += arguments[j].count;
      TensorRecord now = record(first[i].toTensor());
      now.write = tensors[at].write;
      now.unread = tensors[at].unread;
      bytes_ += now.bytes() - tensors[at].bytes();
      tensors[at] = now;
    } else if (first[i].isTensor()) {
      add_fresh(first[i].toTensor());
    } else if (first[i].isTensorList()) {
      for (const at::Tensor& tensor : first[i].toTensorList()) add_fresh(tensor);
    }
  }
}

bool Capture::outputs_apart() const {
  auto end_of = [this](const TensorRecord& t) {
    int64_t last = 0;
    for (size_t i = 0; i < t.rank; ++i) last += (sizes(t)[i] - 1) * strides(t)[i];
    return t.data + (last + 1) * static_cast<int64_t>(c10::elementSize(t.dtype));
  };
  auto meet = [&end_of](const TensorRecord& a, const TensorRecord& b) {
    return a.numel > 0 && b.numel > 0 && a.data < end_of(b) && b.data < end_of(a);
  };
  return std::none_of(tensors.begin(), tensors.end(), [&](const TensorRecord& written) {
    return written.write && std::any_of(tensors.begin(), tensors.end(),
                                        [&](const TensorRecord& read) { return !read.write && meet(read, written); });
  });
}

void Capture::describe(const Operator& op, wire::Pack& pack) const {
  auto described = [](const TensorRecord& t) { return t.place != Place::absent; };
  pack.text("op").text(op.name);
  pack.text("tensors").array(static_cast<uint32_t>(std::count_if(tensors.begin(), tensors.end(), described)));
  for (const TensorRecord& t : tensors) {
    if (described(t)) pack_tensor(*this, t, pack);
  }
  auto has_scalar = [](const ArgumentRecord& a) { return a.kind == Kind::value || a.kind == Kind::optional_list; };
  pack.text("scalars").array(static_cast<uint32_t>(std::count_if(arguments.begin(), arguments.end(), has_scalar)));
  const c10::IValue* value = values.begin();
  const TensorRecord* tensor = tensors.begin();
  for (size_t i = 0; i < arguments.size(); tensor += arguments[i++].count) {
    if (arguments[i].kind == Kind::value) pack_value(*value++, op.arguments[i].magnitude, pack);
    if (arguments[i].kind == Kind::optional_list) {  // which of them are there: x[:, i] is not x[i]
      pack.array(arguments[i].count);
      for (uint32_t n = 0; n < arguments[i].count; ++n) pack.boolean(described(tensor[n]));
    }
  }
}

void Capture::detach_from_caller() {
  for (at::Tensor& tensor : host_tensors) tensor = tensor.clone();
}

}  // namespace phantora::aten
