// Memory nodes of CUDA graphs, without a simulator.
#include <cstdint>
#include <cstring>
#include <vector>

#include "graphs.h"

struct cudaMemPoolProps {
  int allocType, handleTypes;
  struct {
    int type, id;
  } location;
  void* win32SecurityAttributes;
  size_t maxSize;
  unsigned short usage;
  unsigned char reserved[54];
};

struct cudaMemAllocNodeParams {
  cudaMemPoolProps poolProps;
  const void* accessDescs;
  size_t accessDescCount, bytesize;
  void* dptr;
};

extern "C" {
int cudaGraphAddMemAllocNode(cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t*, size_t, cudaMemAllocNodeParams*);
int cudaGraphAddMemFreeNode(cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t*, size_t, void*);
int cudaGraphMemAllocNodeGetParams(cudaGraphNode_t, cudaMemAllocNodeParams*);
int cudaGraphMemFreeNodeGetParams(cudaGraphNode_t, void*);
int cudaGraphAddMemsetNode(cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t*, size_t, const void*);
int cudaGraphAddChildGraphNode(cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t*, size_t, cudaGraph_t);
int cudaDeviceGetGraphMemAttribute(int, int, void*);
int cudaDeviceSetGraphMemAttribute(int, int, void*);
int cudaDeviceGraphMemTrim(int);
}

namespace {

constexpr int used = 0, used_high = 1, reserved = 2;
constexpr int alloc_node = 10, free_node = 11;
constexpr unsigned long long frees_on_launch = 1;
constexpr size_t mib = size_t{1} << 20;

uint64_t attribute(int which) {
  uint64_t value = 0;
  CHECK_EQUAL(cudaDeviceGetGraphMemAttribute(0, which, &value), cudaSuccess);
  return value;
}

size_t free_bytes() {
  size_t free = 0, total = 0;
  CHECK_EQUAL(cudaMemGetInfo(&free, &total), cudaSuccess);
  return free;
}

void trim() { CHECK_EQUAL(cudaDeviceGraphMemTrim(0), cudaSuccess); }

void* allocated(size_t bytes, cudaStream_t stream) {
  void* memory = nullptr;
  CHECK_EQUAL(cudaMallocAsync(&memory, bytes, stream), cudaSuccess);
  CHECK(memory != nullptr);
  return memory;
}

std::vector<cudaGraphNode_t> nodes_of(cudaGraph_t graph) {
  std::vector<cudaGraphNode_t> nodes(node_count(graph));
  size_t count = nodes.size();
  CHECK_EQUAL(cudaGraphGetNodes(graph, nodes.data(), &count), cudaSuccess);
  return nodes;
}

// Two allocations, of which only one lives at a time, and a copy of what was in them.
void test_capture() {
  cudaStream_t stream = new_stream();
  auto* result = on_device<uint8_t>({0, 0});
  size_t before = free_bytes();
  void *first = nullptr, *second = nullptr;
  cudaGraph_t graph = captured(stream, [&] {
    first = allocated(100 * mib, stream);
    set_memory(first, 7, stream);
    CHECK_EQUAL(cudaMemcpyAsync(result, first, 1, cudaMemcpyDeviceToDevice, stream), cudaSuccess);
    CHECK_EQUAL(cudaFreeAsync(first, stream), cudaSuccess);
    second = allocated(60 * mib, stream);
    set_memory(second, 9, stream);
    CHECK_EQUAL(cudaMemcpyAsync(result + 1, second, 1, cudaMemcpyDeviceToDevice, stream), cudaSuccess);
    CHECK_EQUAL(cudaFreeAsync(second, stream), cudaSuccess);
  });
  std::vector<cudaGraphNode_t> nodes = nodes_of(graph);
  CHECK_EQUAL(nodes.size(), 8u);
  CHECK_EQUAL(type_of(nodes[0]), alloc_node);
  CHECK_EQUAL(type_of(nodes[3]), free_node);
  cudaMemAllocNodeParams parameters = {};
  void* freed = nullptr;
  CHECK_EQUAL(cudaGraphMemAllocNodeGetParams(nodes[0], &parameters), cudaSuccess);
  CHECK_EQUAL(cudaGraphMemFreeNodeGetParams(nodes[3], &freed), cudaSuccess);
  CHECK(parameters.dptr == first && freed == first);
  CHECK(parameters.bytesize >= 100 * mib);
  CHECK(cudaGraphMemAllocNodeGetParams(nodes[3], &parameters) != cudaSuccess);
  CHECK_EQUAL(free_bytes(), before);

  cudaGraphExec_t executable = instantiated(graph);
  for (int turn = 0; turn < 3; ++turn) run(executable, stream);
  uint8_t back[2] = {};
  CHECK_EQUAL(cudaMemcpy(back, result, 2, cudaMemcpyDeviceToHost), cudaSuccess);
  CHECK_EQUAL(back[0], 7);
  CHECK_EQUAL(back[1], 9);

  CHECK_EQUAL(attribute(used), 0u);
  CHECK(attribute(used_high) >= 100 * mib && attribute(used_high) < 160 * mib);
  CHECK(attribute(reserved) >= 100 * mib && attribute(reserved) < 160 * mib);
  CHECK(free_bytes() <= before - 100 * mib);
  trim();
  CHECK_EQUAL(attribute(reserved), 0u);
  CHECK_EQUAL(free_bytes(), before);
  uint64_t zero = 0;
  CHECK_EQUAL(cudaDeviceSetGraphMemAttribute(0, used_high, &zero), cudaSuccess);
  CHECK_EQUAL(attribute(used_high), 0u);
  CHECK_EQUAL(cudaGraphExecDestroy(executable), cudaSuccess);
  CHECK_EQUAL(cudaGraphDestroy(graph), cudaSuccess);
}

// What a graph does not free is its launcher's to free before the next launch.
void test_outliving_memory() {
  cudaStream_t stream = new_stream();
  void* memory = nullptr;
  cudaGraph_t graph = captured(stream, [&] {
    memory = allocated(4 * mib, stream);
    set_memory(memory, 5, stream);
  });
  CHECK_EQUAL(cudaFreeAsync(memory, stream), cudaErrorInvalidValue);  // nothing has allocated it yet
  cudaGetLastError();
  cudaGraphExec_t executable = instantiated(graph), second = nullptr;
  CHECK(cudaGraphInstantiate(&second, graph, 0) != cudaSuccess);  // one at a time
  cudaGetLastError();
  run(executable, stream);
  uint8_t back = 0;
  CHECK_EQUAL(cudaMemcpy(&back, memory, 1, cudaMemcpyDeviceToHost), cudaSuccess);
  CHECK_EQUAL(back, 5);
  CHECK(attribute(used) >= 4 * mib);
  CHECK_EQUAL(cudaGraphLaunch(executable, stream), cudaErrorInvalidValue);
  cudaGetLastError();
  CHECK_EQUAL(cudaFreeAsync(memory, stream), cudaSuccess);
  run(executable, stream);
  CHECK_EQUAL(cudaFree(memory), cudaSuccess);
  CHECK_EQUAL(cudaFree(memory), cudaErrorInvalidValue);
  cudaGetLastError();
  CHECK_EQUAL(attribute(used), 0u);
  CHECK_EQUAL(cudaGraphExecDestroy(executable), cudaSuccess);

  CHECK_EQUAL(cudaGraphInstantiate(&executable, graph, frees_on_launch), cudaSuccess);
  for (int turn = 0; turn < 3; ++turn) run(executable, stream);
  CHECK(attribute(used) >= 4 * mib && attribute(used) < 8 * mib);

  // Another graph may free it.
  cudaGraph_t other = captured(stream, [&] { CHECK_EQUAL(cudaFreeAsync(memory, stream), cudaSuccess); });
  run(instantiated(other), stream);
  CHECK_EQUAL(attribute(used), 0u);
  trim();
}

void test_nodes() {
  cudaStream_t stream = new_stream();
  cudaGraph_t graph = new_graph();
  cudaGraphNode_t alloc = nullptr, set = nullptr, free = nullptr;
  cudaMemAllocNodeParams parameters = {};
  parameters.poolProps.allocType = 1;
  parameters.poolProps.location = {1, 0};
  parameters.bytesize = mib;
  CHECK_EQUAL(cudaGraphAddMemAllocNode(&alloc, graph, nullptr, 0, &parameters), cudaSuccess);
  CHECK(parameters.dptr != nullptr);
  struct {
    void* dst;
    size_t pitch;
    unsigned value, elementSize;
    size_t width, height;
  } memset = {parameters.dptr, 0, 3, 1, 16, 1};
  CHECK_EQUAL(cudaGraphAddMemsetNode(&set, graph, &alloc, 1, &memset), cudaSuccess);
  CHECK_EQUAL(cudaGraphAddMemFreeNode(&free, graph, &set, 1, parameters.dptr), cudaSuccess);
  CHECK_EQUAL(cudaGraphAddMemFreeNode(&free, graph, &set, 1, &memset), cudaErrorInvalidValue);
  cudaGetLastError();
  cudaGraph_t clone = nullptr, parent = new_graph();
  cudaGraphNode_t child = nullptr;
  CHECK(cudaGraphClone(&clone, graph) != cudaSuccess);
  CHECK(cudaGraphAddChildGraphNode(&child, parent, nullptr, 0, graph) != cudaSuccess);
  cudaGetLastError();
  cudaGraphExec_t executable = instantiated(graph);
  run(executable, stream);
  run(executable, stream);
  CHECK_EQUAL(attribute(used), 0u);
  trim();
}

void test_more_than_the_device_has() {
  cudaStream_t stream = new_stream();
  size_t too_much = free_bytes() + mib;
  cudaGraph_t graph = captured(stream, [&] {
    void* memory = allocated(too_much, stream);
    CHECK_EQUAL(cudaFreeAsync(memory, stream), cudaSuccess);
  });
  cudaGraphExec_t executable = nullptr;
  int status = cudaGraphInstantiate(&executable, graph, 0);
  if (status == cudaSuccess) status = cudaGraphLaunch(executable, stream);
  CHECK_EQUAL(status, cudaErrorMemoryAllocation);
  cudaGetLastError();
}

}  // namespace

int main() {
  test_capture();
  test_outliving_memory();
  test_nodes();
  test_more_than_the_device_has();
  return checks_failed();
}
