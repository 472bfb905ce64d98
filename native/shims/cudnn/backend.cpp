#include "cudnn/backend.h"

#include <algorithm>
#include <initializer_list>

#include "cudnn/element_type.h"

namespace phantora::cudnn::backend {

size_t element_bytes(ElementType type) {
  switch (type) {
    case ElementType::boolean:
    case ElementType::character:
      return 1;
    case ElementType::int64:
    case ElementType::float64:
    case ElementType::pointer:
    case ElementType::descriptor:
      return 8;
    case ElementType::fraction:
      return 16;
  }
  constexpr auto handle = static_cast<ElementType>(0);
  return type == handle ? 8 : 4;  // the others are float, int32 and enumerations
}

std::shared_ptr<Descriptor> make_finalized(Kind kind, Name name, std::shared_ptr<Descriptor> child) {
  auto made = std::make_shared<Descriptor>();
  made->kind = kind;
  made->finalized = true;
  made->attributes[name] = {ElementType::descriptor, 1, {}, {std::move(child)}};
  return made;
}

namespace {

bool is_convolution(const Descriptor& operation) {
  return operation.kind == Kind::convolution_forward || operation.kind == Kind::convolution_backward_data ||
         operation.kind == Kind::convolution_backward_filter;
}

bool is_float32(const Descriptor& tensor) {
  const auto type = tensor.values<int>(Name::tensor_type);
  return type.size() == 1 && static_cast<DataType>(type[0]) == DataType::f32;
}

bool convolves_float32(const Descriptor& graph) {
  const Attribute* operations = graph.find(Name::graph_operations);
  if (operations == nullptr) return false;
  return std::ranges::any_of(operations->children, [](const auto& operation) {
    if (!is_convolution(*operation)) return false;
    return std::ranges::all_of(operation->attributes, [](const auto& named) {
      return std::ranges::all_of(named.second.children,
                                 [](const auto& child) { return child->kind != Kind::tensor || is_float32(*child); });
    });
  });
}

int64_t engine_count(const Descriptor* graph) { return graph != nullptr && convolves_float32(*graph) ? 2 : 1; }

Attribute integer(int64_t value) {
  Attribute attribute{ElementType::int64, 1, std::vector<char>(sizeof value), {}};
  std::memcpy(attribute.bytes.data(), &value, sizeof value);
  return attribute;
}

// Engines differ in precision only: which kernels one would choose is the cost engines' business. The fastest is first.
Attribute heuristics_results(const Descriptor& heuristics) {
  const auto graph = heuristics.child(Name::heuristics_graph);
  Attribute results{ElementType::descriptor, engine_count(graph.get()), {}, {}};
  for (int64_t index = 0; index < results.count; ++index) {
    auto engine = make_finalized(Kind::engine, Name::engine_graph, graph);
    engine->attributes[Name::engine_index] = integer(index);
    results.children.push_back(make_finalized(Kind::engine_config, Name::config_engine, std::move(engine)));
  }
  return results;
}

Attribute numerical_notes(const Descriptor& engine) {
  constexpr int tensor_core = 0;
  if (!uses_tf32(engine)) return {};
  Attribute notes{ElementType::numerical_note, 1, std::vector<char>(sizeof tensor_core), {}};
  std::memcpy(notes.bytes.data(), &tensor_core, sizeof tensor_core);
  return notes;
}

}  // namespace

bool uses_tf32(const Descriptor& engine) {
  const auto index = engine.values<int64_t>(Name::engine_index);
  return index == std::vector<int64_t>{0} && engine_count(engine.child(Name::engine_graph).get()) > 1;
}

bool derive(const Descriptor& descriptor, Name name, Attribute* out) {
  switch (name) {
    case Name::heuristics_results:
      *out = heuristics_results(descriptor);
      return true;
    case Name::graph_engine_count:
      *out = integer(engine_count(&descriptor));
      return true;
    case Name::engine_numerical_notes:
      *out = numerical_notes(descriptor);
      return true;
    case Name::plan_workspace:  // what real plans need is not published; buffers of a graph's own are the frontend's
    case Name::config_workspace:
    case Name::config_shared:
      *out = integer(0);
      return true;
    case Name::engine_knobs:
    case Name::engine_layouts:
    case Name::engine_behavior_notes:
    case Name::config_intermediates:
    case Name::config_knob_choices:
    case Name::plan_computed_uids:
    case Name::plan_run_only_uids:
      *out = {};
      return true;
    default:
      return false;
  }
}

}  // namespace phantora::cudnn::backend

using phantora::cudnn::Status;
using phantora::cudnn::backend::Attribute;
using phantora::cudnn::backend::Descriptor;
using phantora::cudnn::backend::ElementType;
using phantora::cudnn::backend::Holder;
using phantora::cudnn::backend::Kind;
using phantora::cudnn::backend::Name;

namespace {

bool has_all(const Descriptor& descriptor, std::initializer_list<Name> names) {
  for (const Name name : names) {
    if (descriptor.find(name) == nullptr) return false;
  }
  return true;
}

// Whether what planning and execution will look for has been set.
bool is_complete(const Descriptor& descriptor) {
  switch (descriptor.kind) {
    case Kind::engine:
      return has_all(descriptor, {Name::engine_graph, Name::engine_index});
    case Kind::engine_config:
      return has_all(descriptor, {Name::config_engine});
    case Kind::engine_heuristics:
      return has_all(descriptor, {Name::heuristics_graph});
    case Kind::execution_plan:
      return has_all(descriptor, {Name::plan_config});
    case Kind::operation_graph:
      return has_all(descriptor, {Name::graph_operations});
    case Kind::tensor:
      return has_all(descriptor, {Name::tensor_type, Name::tensor_dims, Name::tensor_strides, Name::tensor_uid});
    default:
      return true;
  }
}

}  // namespace

extern "C" {

Status cudnnBackendCreateDescriptor(Kind kind, Holder** out) {
  if (out == nullptr) return Status::null_pointer;
  *out = new Holder{std::make_shared<Descriptor>()};
  (*out)->descriptor->kind = kind;
  return Status::success;
}

Status cudnnBackendDestroyDescriptor(Holder* holder) {
  delete holder;
  return Status::success;
}

Status cudnnBackendFinalize(Holder* holder) {
  if (holder == nullptr) return Status::null_pointer;
  if (!is_complete(*holder->descriptor)) return Status::bad_param;
  holder->descriptor->finalized = true;
  return Status::success;
}

Status cudnnBackendSetAttribute(Holder* holder, Name name, ElementType type, int64_t count, const void* elements) {
  if (holder == nullptr || (elements == nullptr && count > 0)) return Status::null_pointer;
  Descriptor& descriptor = *holder->descriptor;
  if (descriptor.finalized || count < 0) return Status::bad_param;
  Attribute attribute{type, count, {}, {}};
  if (type == ElementType::descriptor) {
    const auto* handles = static_cast<Holder* const*>(elements);
    for (int64_t i = 0; i < count; ++i) {
      if (handles[i] == nullptr) return Status::null_pointer;
      attribute.children.push_back(handles[i]->descriptor);
    }
  } else {
    const auto* bytes = static_cast<const char*>(elements);
    attribute.bytes.assign(bytes, bytes + count * phantora::cudnn::backend::element_bytes(type));
  }
  descriptor.attributes[name] = std::move(attribute);
  return Status::success;
}

// `given` is how many there are; as many as fit into `elements` are stored. Heuristics look for no more configurations
// than are asked for, so that there are no more then. Descriptors go behind handles that the caller has made for them.
Status cudnnBackendGetAttribute(Holder* holder, Name name, ElementType type, int64_t requested, int64_t* given,
                                void* elements) {
  if (holder == nullptr) return Status::null_pointer;
  const Descriptor& descriptor = *holder->descriptor;
  if (!descriptor.finalized) return Status::not_finalized;
  Attribute derived;
  const Attribute* attribute = descriptor.find(name);
  if (attribute == nullptr && phantora::cudnn::backend::derive(descriptor, name, &derived)) attribute = &derived;
  if (given != nullptr) *given = attribute == nullptr ? 0 : attribute->count;
  if (attribute == nullptr) return Status::not_supported;
  if (attribute->count > 0 && attribute->type != type) return Status::attribute_type;
  const int64_t stored = std::min(requested, attribute->count);
  if (elements == nullptr || stored <= 0) return Status::success;
  if (name == Name::heuristics_results && given != nullptr) *given = stored;
  if (type == ElementType::descriptor) {
    auto* handles = static_cast<Holder**>(elements);
    for (int64_t i = 0; i < stored; ++i) {
      if (handles[i] == nullptr) return Status::null_pointer;
      handles[i]->descriptor = attribute->children[i];
    }
  } else {
    std::memcpy(elements, attribute->bytes.data(), stored * phantora::cudnn::backend::element_bytes(type));
  }
  return Status::success;
}

}  // extern "C"
