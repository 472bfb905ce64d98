// Nodes of CUDA graphs by general parameters: what programs can see of them, without a simulator.
#include <cstdint>
#include <cstring>
#include <vector>

#include "graph_nodes.h"

namespace {

// All but conditional ones, each after the one before it.
void test_each_type() {
  cudaStream_t stream = new_stream();
  auto* memory = on_device<uint32_t>(std::vector<uint32_t>(8, 0));
  cudaGraph_t graph = new_graph(), child = nullptr;
  cudaGraphNode_t last = nullptr;
  auto add = [&](cudaGraphNodeParams parameters) {
    cudaGraphNode_t node = nullptr;
    CHECK_EQUAL(cudaGraphAddNode(&node, graph, &last, nullptr, last ? 1 : 0, &parameters), cudaSuccess);
    CHECK_EQUAL(type_of(node), parameters.type);
    last = node;
  };
  auto of_type = [](int type) {
    cudaGraphNodeParams parameters = {};
    parameters.type = type;
    return parameters;
  };
  cudaGraphNodeParams kernel = of_type(kernel_node), set = of_type(memset_node), copy = of_type(memcpy_node);
  kernel.kernel = {&kernel_stub, {1, 1, 1}, {32, 1, 1}, 0, nullptr, nullptr};
  set.memset = {memory, 8, 0x01020304, 4, 1, 4};  // the first of every two
  // The last two rows of four bytes, to the second of every two.
  copy.memcpy = {0,       {},        nullptr,           {0, 2, 0}, {memory, 8, 8, 4},
                 nullptr, {4, 0, 0}, {memory, 8, 8, 4}, {4, 2, 1}, cudaMemcpyDeviceToDevice};
  add(kernel);
  add(set);
  add(copy);
  add(of_type(empty_node));
  cudaGraphNode_t none = nullptr;
  set.memset.width = 0;
  CHECK_EQUAL(cudaGraphAddNode(&none, graph, nullptr, nullptr, 0, &set), cudaErrorInvalidValue);
  cudaGetLastError();

  int called = 0;
  cudaGraphNodeParams host = of_type(host_node), event = of_type(event_record_node), nested = of_type(graph_node);
  host.host = {[](void* count) { ++*static_cast<int*>(count); }, &called};
  CHECK_EQUAL(cudaEventCreate(&event.event.event), cudaSuccess);
  child = captured(stream, [&] { set_memory(reinterpret_cast<char*>(memory) + 31, 7, stream); });
  nested.graph = {child, 0};
  add(host);
  add(event);
  add(nested);
  CHECK_EQUAL(node_count(graph), 7u);
  cudaGraph_t inside = nullptr;
  CHECK_EQUAL(cudaGraphChildGraphNodeGetGraph(last, &inside), cudaSuccess);
  CHECK(inside != child);
  CHECK_EQUAL(node_count(inside), 1u);

  run(instantiated(graph), stream);
  uint32_t back[8] = {};
  CHECK_EQUAL(cudaMemcpy(back, memory, sizeof back, cudaMemcpyDeviceToHost), cudaSuccess);
  const uint32_t expected[8] = {0x01020304, 0x01020304, 0x01020304, 0x01020304, 0x01020304, 0, 0x01020304, 0x07000000};
  CHECK(std::memcmp(back, expected, sizeof back) == 0);
  CHECK_EQUAL(called, 1);
  CHECK_EQUAL(cudaEventQuery(event.event.event), cudaSuccess);
}

}  // namespace

int main() {
  register_kernel(&kernel_stub, "stub");
  test_each_type();
  return checks_failed();
}
