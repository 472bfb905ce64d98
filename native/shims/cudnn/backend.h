// Descriptors of cuDNN's backend (graph) API: typed attribute stores, whatever their kind.
//
// A handle (cudnnBackendDescriptor_t) is a Holder; what it holds is shared, so that a plan keeps its graph and a graph
// its operations when the caller destroys the handles, and so that a query can put an existing descriptor behind a
// handle.
#pragma once
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cudnn/status.h"

namespace phantora::cudnn::backend {

enum class Kind : int {  // cudnnBackendDescriptorType_t: those with a part in planning and execution
  engine = 2,
  engine_config = 3,
  engine_heuristics = 4,
  execution_plan = 5,
  convolution_forward = 10,
  convolution_backward_filter = 11,
  convolution_backward_data = 12,
  operation_graph = 15,
  variant_pack = 16,
  tensor = 17,
};

enum class ElementType : int {
  boolean = 2,
  int64 = 3,
  float64 = 5,
  pointer = 6,
  numerical_note = 11,
  descriptor = 15,
  character = 24,
  fraction = 26
};

// cudnnBackendAttributeName_t: those that are asked for here; all others are only stored.
enum class Name : int {
  heuristics_graph = 201,
  heuristics_results = 202,
  config_engine = 300,
  config_intermediates = 301,
  config_knob_choices = 302,
  config_workspace = 303,
  config_shared = 304,
  plan_handle = 400,
  plan_config = 401,
  plan_workspace = 402,
  plan_computed_uids = 403,
  plan_run_only_uids = 404,
  graph_handle = 800,
  graph_operations = 801,
  graph_engine_count = 802,
  tensor_type = 901,
  tensor_dims = 902,
  tensor_strides = 903,
  tensor_uid = 906,
  tensor_virtual = 907,
  tensor_by_value = 908,
  pack_uids = 1000,
  pack_pointers = 1001,
  pack_workspace = 1003,
  engine_graph = 1300,
  engine_index = 1301,
  engine_knobs = 1302,
  engine_numerical_notes = 1303,
  engine_layouts = 1304,
  engine_behavior_notes = 1305,
};

struct Descriptor;

struct Attribute {
  ElementType type{};
  int64_t count = 0;
  std::vector<char> bytes;                            // of all elements; empty for descriptors
  std::vector<std::shared_ptr<Descriptor>> children;  // type descriptor
};

struct Descriptor {
  Kind kind{};
  bool finalized = false;
  std::map<Name, Attribute> attributes;

  const Attribute* find(Name name) const {
    const auto found = attributes.find(name);
    return found == attributes.end() ? nullptr : &found->second;
  }
  // The only descriptor of an attribute; null if there is none.
  std::shared_ptr<Descriptor> child(Name name) const {
    const Attribute* attribute = find(name);
    return attribute && !attribute->children.empty() ? attribute->children.front() : nullptr;
  }
  // All elements of an attribute; empty if it was not set, or with elements of another size.
  template <typename T>
  std::vector<T> values(Name name) const {
    const Attribute* attribute = find(name);
    if (attribute == nullptr || attribute->bytes.size() != attribute->count * sizeof(T)) return {};
    std::vector<T> out(attribute->count);
    if (!out.empty()) std::memcpy(out.data(), attribute->bytes.data(), attribute->bytes.size());
    return out;
  }
};

struct Holder {
  std::shared_ptr<Descriptor> descriptor;
};

size_t element_bytes(ElementType type);

// A finalized descriptor with one attribute that refers to another one.
std::shared_ptr<Descriptor> make_finalized(Kind kind, Name name, std::shared_ptr<Descriptor> child);

// Whether the engine multiplies float32 in TF32. Graphs that convolve float32 have one that does and one that does not,
// because callers choose between them by their numerical notes.
bool uses_tf32(const Descriptor& engine);

// What a finalized descriptor answers though nobody set it: heuristics, engines, sizes. False: nothing to add.
bool derive(const Descriptor& descriptor, Name name, Attribute* out);

}  // namespace phantora::cudnn::backend
