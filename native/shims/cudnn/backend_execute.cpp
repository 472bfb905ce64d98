// Execution of a plan: one launch, named after the graph's operations ("cudnnBackendExecute:MATMUL+POINTWISE").
#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <unordered_map>

#include "cudnn/backend.h"
#include "cudnn/element_type.h"
#include "cudnn/handle.h"

using phantora::Launch;
using phantora::StreamId;
using phantora::cudnn::DataType;
using phantora::cudnn::Handle;
using phantora::cudnn::Status;
using phantora::cudnn::backend::Descriptor;
using phantora::cudnn::backend::Holder;
using phantora::cudnn::backend::Kind;
using phantora::cudnn::backend::Name;
using phantora::cudnn::backend::uses_tf32;
using phantora::shim::Written;

namespace {

struct OperationName {
  int kind;  // cudnnBackendDescriptorType_t
  std::string_view name;
};

constexpr OperationName operation_names[] = {
    {10, "CONVOLUTION_FORWARD"},
    {11, "CONVOLUTION_BACKWARD_FILTER"},
    {12, "CONVOLUTION_BACKWARD_DATA"},
    {13, "POINTWISE"},
    {14, "GEN_STATS"},
    {19, "MATMUL"},
    {20, "BN_FINALIZE_STATISTICS"},
    {22, "REDUCTION"},
    {23, "BN_BWD_WEIGHTS"},
    {25, "RESAMPLE_FWD"},
    {26, "RESAMPLE_BWD"},
    {27, "CONCAT"},
    {28, "SIGNAL"},
    {29, "NORM_FORWARD"},
    {30, "NORM_BACKWARD"},
    {31, "RESHAPE"},
    {33, "RNG"},
    {35, "PAGED_CACHE_LOAD"},
    {36, "BLOCK_SCALE_QUANTIZE"},
    {37, "BLOCK_SCALE_DEQUANTIZE"},
    {39, "EXPAND_BAND_MATRIX"},
    {40, "CONTRACT_BAND_MATRIX"},
    {41, "SDPA_FWD"},
    {42, "MOE_GROUPED_MATMUL"},
    {43, "SDPA_BWD"},
    {44, "DIAGONAL_BAND_MASK"},
    {45, "SOFTMAX"},
    {46, "TRANSPOSE"},
    {47, "SLICE"},
    {48, "MOE_GROUPED_MATMUL_BWD"},
    {49, "ROPE_FWD"},
    {50, "ROPE_BWD"},
};

// Attributes of operations that name a tensor which the operation writes, ascending.
constexpr int written_attributes[] = {
    705,  710,  715,                    // convolutions: y, dx, dw
    753,  756,                          // pointwise: y, dx
    773,  774,                          // statistics
    788,  789,  790,  791,  792,  793,  // batch-norm finalize: running and saved statistics, equivalent scale and bias
    1522,                               // matmul: c
    1611,                               // reduction: y
    1626, 1627, 1628, 1629, 1630,       // batch-norm backward weights
    1711, 1712, 1720,                   // resample: y, indices, dx
    1803, 1904, 1951,                   // concat, signal, paged cache
    2003, 2004, 2011, 2012, 2013,       // normalisation forward: statistics, y
    2107, 2108, 2109,                   // normalisation backward
    2201, 2251, 2271, 2310,             // reshape, band matrices, random numbers
    2501, 2502, 2602,                   // block scaling
    2803, 2804,                         // attention forward: o, stats
    2859, 2860, 2861, 2864,             // attention backward: dq, dk, dv, dsink
    2905, 2953,                         // grouped matmul: output, dweight
    3006, 3101, 3102, 3103, 3104,       // mask, softmax
    3201, 3301, 3401, 3411,             // transpose, slice, rotary embedding
};

std::string kernel_name(const Descriptor& graph) {
  std::string name = "cudnnBackendExecute:";
  const auto& operations = graph.find(Name::graph_operations)->children;
  for (size_t i = 0; i < operations.size(); ++i) {
    const int kind = static_cast<int>(operations[i]->kind);
    const auto* known = std::find_if(std::begin(operation_names), std::end(operation_names),
                                     [kind](const OperationName& each) { return each.kind == kind; });
    if (i > 0) name += '+';
    name += known == std::end(operation_names) ? "OPERATION_" + std::to_string(kind) : std::string(known->name);
  }
  return name;
}

size_t tensor_bytes(const Descriptor& tensor) {
  const auto type = tensor.values<int>(Name::tensor_type);
  const auto dims = tensor.values<int64_t>(Name::tensor_dims), strides = tensor.values<int64_t>(Name::tensor_strides);
  if (type.size() != 1 || dims.size() != strides.size()) return 0;
  int64_t last = 0;
  for (size_t i = 0; i < dims.size(); ++i) last += (dims[i] - 1) * strides[i];
  return phantora::cudnn::bytes_of(static_cast<DataType>(type[0]), last + 1);
}

std::unordered_map<int64_t, void*> pointers_by_uid(const Descriptor& pack) {
  const auto uids = pack.values<int64_t>(Name::pack_uids);
  const auto pointers = pack.values<void*>(Name::pack_pointers);
  std::unordered_map<int64_t, void*> out;
  for (size_t i = 0; i < std::min(uids.size(), pointers.size()); ++i) out[uids[i]] = pointers[i];
  return out;
}

// Only needed for executions that no op owns; see library_launch.h.
void overwrite_outputs(StreamId stream, const Descriptor& graph, const Descriptor& pack) {
  const auto pointers = pointers_by_uid(pack);
  for (const auto& operation : graph.find(Name::graph_operations)->children) {
    for (const auto& [name, attribute] : operation->attributes) {
      if (!std::binary_search(std::begin(written_attributes), std::end(written_attributes), static_cast<int>(name)))
        continue;
      for (const auto& tensor : attribute.children) {
        const auto uid = tensor->values<int64_t>(Name::tensor_uid);
        const auto found = uid.empty() ? pointers.end() : pointers.find(uid[0]);
        if (found == pointers.end()) continue;  // virtual: it never reaches memory
        const Written out{found->second, tensor_bytes(*tensor)};
        phantora::values::submit(stream, [out] { phantora::values::mark_unknown(out.pointer, out.bytes); });
      }
    }
  }
}

std::shared_ptr<Descriptor> engine_of(const Descriptor& plan) {
  const auto config = plan.child(Name::plan_config);
  return config ? config->child(Name::config_engine) : nullptr;
}

}  // namespace

extern "C" Status cudnnBackendExecute(Handle* handle, Holder* plan, Holder* pack) {
  if (handle == nullptr || plan == nullptr || pack == nullptr) return Status::null_pointer;
  if (plan->descriptor->kind != Kind::execution_plan || pack->descriptor->kind != Kind::variant_pack) {
    return Status::descriptor_type;
  }
  if (!plan->descriptor->finalized || !pack->descriptor->finalized) return Status::not_finalized;
  const auto engine = engine_of(*plan->descriptor);
  const auto graph = engine ? engine->child(Name::engine_graph) : nullptr;
  if (graph == nullptr || graph->find(Name::graph_operations) == nullptr) return Status::bad_param;
  const std::string kernel = kernel_name(*graph) + (uses_tf32(*engine) ? phantora::cudnn::tf32_suffix : "");
  Launch launch;
  launch.kernel = kernel;
  const StreamId stream = phantora::shim::launch_on(handle->stream, "cudnnBackendExecute", launch);
  if (phantora::current_op() == nullptr) overwrite_outputs(stream, *graph, *pack->descriptor);
  return Status::success;
}
