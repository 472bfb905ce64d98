// cuBLAS, cuBLASLt and cuDNN called as a native program calls them: no op owns the launches.
//   usage: library_calls_test   (PHANTORA_SINK=null)
#include <cstdint>
#include <cstring>
#include <vector>

#include "check.h"
#include "phantora/counters.h"
#include "phantora/memory.h"
#include "phantora/values.h"

extern "C" {
int cublasCreate_v2(void** handle);
int cublasDestroy_v2(void* handle);
int cublasSetMathMode(void* handle, int mode);
int cublasGetMathMode(void* handle, int* mode);
int cublasSgemm_v2(void* handle, int, int, int m, int n, int k, const float*, const float*, int, const float*, int,
                   const float*, float* c, int ldc);
int cublasSgemmBatched(void* handle, int, int, int m, int n, int k, const float*, const float* const*, int,
                       const float* const*, int, const float*, float* const* c, int ldc, int batch);
int cublasSdot_v2(void* handle, int n, const float*, int, const float*, int, float* result);
int cublasLtMatmulDescCreate(void** desc, int compute, int scale);
int cublasLtMatmulDescDestroy(void* desc);
int cublasLtMatmulDescInit_internal(void* storage, size_t bytes, int compute, int scale);
int cublasLtMatmulDescSetAttribute(void* desc, int attribute, const void* value, size_t bytes);
int cublasLtMatmulDescGetAttribute(const void* desc, int attribute, void* value, size_t bytes, size_t* written);
int cudnnCreate(void** handle);
int cudnnBackendCreateDescriptor(int kind, void** descriptor);
int cudnnBackendDestroyDescriptor(void* descriptor);
int cudnnBackendFinalize(void* descriptor);
int cudnnBackendSetAttribute(void* descriptor, int name, int type, int64_t count, const void* elements);
int cudnnBackendGetAttribute(void* descriptor, int name, int type, int64_t requested, int64_t* given, void* elements);
int cudnnBackendExecute(void* handle, void* plan, void* pack);
}

namespace {

namespace counters = phantora::counters;
namespace memory = phantora::memory;
namespace values = phantora::values;
using values::State;

constexpr int invalid_value = 7;

float* known_device_memory(size_t elements) {
  void* p = memory::allocate(0, elements * sizeof(float));
  CHECK(p != nullptr);
  std::memset(p, 0, elements * sizeof(float));
  values::mark_known(p, elements * sizeof(float));
  return static_cast<float*>(p);
}

State state(const float* p, size_t elements) { return values::state(p, elements * sizeof(float)); }

void products_leave_exactly_their_output_unknown() {
  void* handle = nullptr;
  CHECK_EQUAL(cublasCreate_v2(&handle), 0);
  float* c = known_device_memory(64);
  const uint64_t launches = counters::launches.value;
  CHECK_EQUAL(cublasSgemm_v2(handle, 0, 0, 4, 3, 2, nullptr, nullptr, 4, nullptr, 2, nullptr, c + 8, 5), 0);
  CHECK_EQUAL(counters::launches.value - launches, 1u);
  CHECK(state(c, 8) == State::known);
  CHECK(state(c + 8, 14) == State::unknown);  // 5 · (3 - 1) + 4 elements
  CHECK(state(c + 22, 42) == State::known);
  CHECK_EQUAL(cublasSgemm_v2(handle, 0, 0, -1, 3, 2, nullptr, nullptr, 4, nullptr, 2, nullptr, c, 5), invalid_value);
  CHECK_EQUAL(cublasSgemm_v2(handle, 0, 0, 0, 3, 2, nullptr, nullptr, 4, nullptr, 2, nullptr, c, 5), 0);
  CHECK_EQUAL(counters::launches.value - launches, 1u);  // nothing to do, nothing launched
  CHECK_EQUAL(cublasDestroy_v2(handle), 0);
}

void batched_products_are_followed_through_their_pointers() {
  void* handle = nullptr;
  CHECK_EQUAL(cublasCreate_v2(&handle), 0);
  float* a = known_device_memory(32);
  float* b = known_device_memory(32);
  void* array = memory::allocate(0, 2 * sizeof(float*));
  float* const pointers[] = {a + 4, b + 4};
  std::memcpy(array, pointers, sizeof pointers);
  values::mark_known(array, sizeof pointers);
  CHECK_EQUAL(cublasSgemmBatched(handle, 0, 0, 2, 2, 2, nullptr, nullptr, 2, nullptr, 2, nullptr,
                                 static_cast<float* const*>(array), 2, 2),
              0);
  for (float* each : {a, b}) {
    CHECK(state(each, 4) == State::known);
    CHECK(state(each + 4, 4) == State::unknown);
    CHECK(state(each + 8, 24) == State::known);
  }
  CHECK_EQUAL(cublasDestroy_v2(handle), 0);
}

void results_on_the_host_are_benign() {
  void* handle = nullptr;
  CHECK_EQUAL(cublasCreate_v2(&handle), 0);
  const float* x = known_device_memory(8);
  float result = 5;
  CHECK_EQUAL(cublasSdot_v2(handle, 8, x, 1, x, 1, &result), 0);
  CHECK_EQUAL(result, 0.0f);
  CHECK_EQUAL(cublasDestroy_v2(handle), 0);
}

void handles_keep_their_modes() {
  void* handle = nullptr;
  int mode = -1;
  CHECK_EQUAL(cublasCreate_v2(&handle), 0);
  CHECK_EQUAL(cublasSetMathMode(handle, 3), 0);
  CHECK_EQUAL(cublasGetMathMode(handle, &mode), 0);
  CHECK_EQUAL(mode, 3);
  CHECK_EQUAL(cublasSetMathMode(nullptr, 3), 1);
  CHECK_EQUAL(cublasDestroy_v2(handle), 0);
}

void lt_descriptors_store_attributes() {
  constexpr int transa = 3, bias_pointer = 8, epilogue = 7, no_such = 999;
  void* desc = nullptr;
  CHECK_EQUAL(cublasLtMatmulDescCreate(&desc, 68, 0), 0);
  const int32_t transpose = 1;
  CHECK_EQUAL(cublasLtMatmulDescSetAttribute(desc, transa, &transpose, sizeof transpose), 0);
  CHECK_EQUAL(cublasLtMatmulDescSetAttribute(desc, transa, &transpose, 1), invalid_value);
  CHECK_EQUAL(cublasLtMatmulDescSetAttribute(desc, no_such, &transpose, sizeof transpose), invalid_value);
  void* const bias = &desc;
  CHECK_EQUAL(cublasLtMatmulDescSetAttribute(desc, bias_pointer, &bias, sizeof bias), 0);
  int32_t read = 0;
  size_t written = 0;
  CHECK_EQUAL(cublasLtMatmulDescGetAttribute(desc, transa, &read, sizeof read, &written), 0);
  CHECK_EQUAL(read, 1);
  CHECK_EQUAL(written, sizeof read);
  uint32_t untouched = 0;
  CHECK_EQUAL(cublasLtMatmulDescGetAttribute(desc, epilogue, &untouched, sizeof untouched, nullptr), 0);
  CHECK_EQUAL(untouched, 1u);  // CUBLASLT_EPILOGUE_DEFAULT
  CHECK_EQUAL(cublasLtMatmulDescDestroy(desc), 0);

  alignas(8) char storage[256];
  CHECK_EQUAL(cublasLtMatmulDescInit_internal(storage, sizeof storage, 68, 0), 0);
  CHECK_EQUAL(cublasLtMatmulDescInit_internal(storage, 8, 68, 0), 3);
}

// --- cuDNN: graphs with one operation, from descriptors to execution
// ---------------------------------------------

enum Kind {
  engine = 2,
  config = 3,
  heuristics = 4,
  plan = 5,
  convolution = 10,
  graph = 15,
  pack = 16,
  tensor = 17,
  matmul = 19
};
enum Type { handle_type = 0, data_type = 1, int64 = 3, pointer = 6, numerical_note = 11, descriptor = 15 };
enum DataType { f32 = 0, bf16 = 9 };

void* create(Kind kind) {
  void* out = nullptr;
  CHECK_EQUAL(cudnnBackendCreateDescriptor(kind, &out), 0);
  return out;
}
void set(void* at, int name, Type type, int64_t count, const void* elements) {
  CHECK_EQUAL(cudnnBackendSetAttribute(at, name, type, count, elements), 0);
}
void finalize(void* at) { CHECK_EQUAL(cudnnBackendFinalize(at), 0); }

void* make_tensor(int64_t uid, DataType type) {
  void* made = create(tensor);
  const int64_t dims[] = {1, 4, 4}, strides[] = {16, 4, 1};
  set(made, 901, data_type, 1, &type);
  set(made, 902, int64, 3, dims);
  set(made, 903, int64, 3, strides);
  CHECK(cudnnBackendFinalize(made) != 0);  // it has no unique id yet
  set(made, 906, int64, 1, &uid);
  finalize(made);
  return made;
}

void* make_graph(void* dnn, Kind kind, DataType type) {
  void* operation = create(kind);
  int attribute = kind == matmul ? 1520 : 703;
  for (const int64_t uid : {1, 2, 3}) {
    void* each = make_tensor(uid, type);
    set(operation, attribute++, descriptor, 1, &each);
    CHECK_EQUAL(cudnnBackendDestroyDescriptor(each), 0);  // the operation keeps what it needs
  }
  finalize(operation);
  void* made = create(graph);
  set(made, 800, handle_type, 1, &dnn);
  set(made, 801, descriptor, 1, &operation);
  finalize(made);
  CHECK_EQUAL(cudnnBackendDestroyDescriptor(operation), 0);
  return made;
}

void* make_plan(void* dnn, void* graph_of) {
  void* asked = create(heuristics);
  set(asked, 201, descriptor, 1, &graph_of);
  int64_t count = -1;
  CHECK_EQUAL(cudnnBackendGetAttribute(asked, 202, descriptor, 0, &count, nullptr), 2004);  // not finalized
  finalize(asked);
  CHECK_EQUAL(cudnnBackendGetAttribute(asked, 202, descriptor, 0, &count, nullptr), 0);
  CHECK_EQUAL(count, 1);
  void* chosen = create(config);
  CHECK_EQUAL(cudnnBackendGetAttribute(asked, 202, descriptor, 1, &count, &chosen), 0);
  void* made = create(plan);
  set(made, 400, handle_type, 1, &dnn);
  set(made, 401, descriptor, 1, &chosen);
  finalize(made);
  int64_t workspace = -1;
  CHECK_EQUAL(cudnnBackendGetAttribute(made, 402, int64, 1, &count, &workspace), 0);
  CHECK_EQUAL(workspace, 0);
  CHECK_EQUAL(cudnnBackendGetAttribute(made, 402, pointer, 1, &count, &workspace), 2010);  // wrong type
  CHECK_EQUAL(cudnnBackendDestroyDescriptor(chosen), 0);
  CHECK_EQUAL(cudnnBackendDestroyDescriptor(asked), 0);
  return made;
}

void graphs_run_as_one_launch() {
  void* dnn = nullptr;
  CHECK_EQUAL(cudnnCreate(&dnn), 0);
  void* graph_made = make_graph(dnn, matmul, f32);
  void* plan_made = make_plan(dnn, graph_made);
  CHECK_EQUAL(cudnnBackendDestroyDescriptor(graph_made), 0);
  float* data[] = {known_device_memory(16), known_device_memory(16), known_device_memory(32)};
  const int64_t uids[] = {1, 2, 3};
  void* pack_made = create(pack);
  set(pack_made, 1000, int64, 3, uids);
  set(pack_made, 1001, pointer, 3, data);
  CHECK_EQUAL(cudnnBackendExecute(dnn, plan_made, pack_made), 2004);
  finalize(pack_made);
  const uint64_t launches = counters::launches.value;
  CHECK_EQUAL(cudnnBackendExecute(dnn, plan_made, pack_made), 0);
  CHECK_EQUAL(counters::launches.value - launches, 1u);
  CHECK(state(data[0], 16) == State::known);
  CHECK(state(data[2], 16) == State::unknown);
  CHECK(state(data[2] + 16, 16) == State::known);
}

using Notes = std::vector<int>;

// Numerical notes of the engines that a graph has, in the order in which the heuristics name them.
std::vector<Notes> engine_notes(Kind kind, DataType type) {
  void* dnn = nullptr;
  CHECK_EQUAL(cudnnCreate(&dnn), 0);
  void* graph_made = make_graph(dnn, kind, type);
  void* asked = create(heuristics);
  set(asked, 201, descriptor, 1, &graph_made);
  finalize(asked);
  int64_t count = 0;
  CHECK_EQUAL(cudnnBackendGetAttribute(asked, 202, descriptor, 0, &count, nullptr), 0);
  void* first = create(config);
  int64_t found = 0;
  CHECK_EQUAL(cudnnBackendGetAttribute(asked, 202, descriptor, 1, &found, &first), 0);
  CHECK_EQUAL(found, 1);  // no more than are asked for
  std::vector<void*> configs(count);
  for (void*& each : configs) each = create(config);
  CHECK_EQUAL(cudnnBackendGetAttribute(asked, 202, descriptor, count, &count, configs.data()), 0);
  std::vector<Notes> out;
  for (void* each : configs) {
    void* engine_made = create(engine);
    CHECK_EQUAL(cudnnBackendGetAttribute(each, 300, descriptor, 1, &count, &engine_made), 0);
    Notes notes(9);
    CHECK_EQUAL(cudnnBackendGetAttribute(engine_made, 1303, numerical_note, 9, &count, notes.data()), 0);
    notes.resize(count);
    out.push_back(notes);
  }
  return out;
}

void convolutions_of_float32_have_an_engine_in_tf32_and_one_that_is_exact() {
  const Notes exact, tensor_core = {0};
  CHECK((engine_notes(convolution, f32) == std::vector<Notes>{tensor_core, exact}));
  CHECK((engine_notes(convolution, bf16) == std::vector<Notes>{exact}));
  CHECK((engine_notes(matmul, f32) == std::vector<Notes>{exact}));
}

}  // namespace

int main() {
  products_leave_exactly_their_output_unknown();
  batched_products_are_followed_through_their_pointers();
  results_on_the_host_are_benign();
  handles_keep_their_modes();
  lt_descriptors_store_attributes();
  graphs_run_as_one_launch();
  convolutions_of_float32_have_an_engine_in_tf32_and_one_that_is_exact();
  return checks_failed();
}
