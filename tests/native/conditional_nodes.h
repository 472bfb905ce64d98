// Conditional nodes of CUDA graphs, with conditions from device memory as PyTorch makes them.
#pragma once
#include <algorithm>
#include <functional>
#include <vector>

#include "graph_nodes.h"

extern "C" {
int cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle*, cudaGraph_t, unsigned, unsigned);
}

inline constexpr unsigned set_dependencies = 1, assign_default = 1;
inline constexpr int if_type = 0, while_type = 1, switch_type = 2;

inline char setter_stub;
inline constexpr const char* setter_name = "_ZN2at4cuda12_GLOBAL__N_129set_conditional_handle_kernelEyPKb";

template <typename Item>
void put(Item* memory, const std::vector<Item>& items) {
  CHECK_EQUAL(cudaMemcpy(memory, items.data(), items.size() * sizeof(Item), cudaMemcpyHostToDevice), cudaSuccess);
}

inline constexpr size_t longest = 8;  // arrays of flags, and of what counts rounds

inline void put_flags(bool* memory, size_t count) {
  bool flags[longest] = {};
  std::fill_n(flags, count, true);
  CHECK_EQUAL(cudaMemcpy(memory, flags, longest, cudaMemcpyHostToDevice), cudaSuccess);
}

inline bool* flags_on_device() {
  void* memory = nullptr;
  CHECK_EQUAL(cudaMalloc(&memory, longest), cudaSuccess);
  return static_cast<bool*>(memory);
}

inline int value_of(const void* memory) {
  unsigned char value = 0;
  CHECK_EQUAL(cudaMemcpy(&value, memory, 1, cudaMemcpyDeviceToHost), cudaSuccess);
  return value;
}

// Moves an array on by one: without a kernel, the way to compute something else in each round.
template <typename Item>
void shift(Item* items, Item* room, cudaStream_t stream) {
  size_t bytes = (longest - 1) * sizeof(Item);
  CHECK_EQUAL(cudaMemcpyAsync(room, items + 1, bytes, cudaMemcpyDeviceToDevice, stream), cudaSuccess);
  CHECK_EQUAL(cudaMemcpyAsync(items, room, bytes, cudaMemcpyDeviceToDevice, stream), cudaSuccess);
}

inline const std::vector<char> numbers = {0, 1, 2, 3, 4, 5, 6, 7};

// PyTorch's kernel: the condition becomes *flag.
inline void set_condition(cudaGraphConditionalHandle handle, const bool* flag, cudaStream_t stream) {
  void* arguments[] = {&handle, &flag};
  CHECK_EQUAL(cudaLaunchKernel(&setter_stub, {1, 1, 1}, {1, 1, 1}, arguments, 0, stream), cudaSuccess);
}

inline cudaGraphConditionalHandle new_handle(cudaGraph_t graph, unsigned value, unsigned flags) {
  cudaGraphConditionalHandle handle = 0;
  CHECK_EQUAL(cudaGraphConditionalHandleCreate(&handle, graph, value, flags), cudaSuccess);
  return handle;
}

inline cudaGraphNodeParams conditional(cudaGraphConditionalHandle handle, int type, unsigned size) {
  cudaGraphNodeParams parameters = {};
  parameters.type = conditional_node;
  parameters.conditional = {handle, type, size, nullptr};
  return parameters;
}

// What PyTorch does: in the middle of a capture, a conditional node whose body is captured on a stream of its own.
inline cudaGraphConditionalHandle capture_conditional(
    cudaStream_t stream, int type, const bool* flag,
    const std::function<void(cudaStream_t, cudaGraphConditionalHandle)>& body) {
  int status = 0;
  cudaGraph_t graph = nullptr;
  const cudaGraphNode_t* nodes = nullptr;
  size_t count = 0;
  auto ask = [&] {
    CHECK_EQUAL(cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph, &nodes, nullptr, &count), cudaSuccess);
  };
  ask();
  cudaGraphConditionalHandle handle = new_handle(graph, 0, 0);
  set_condition(handle, flag, stream);
  ask();
  cudaGraphNode_t node = nullptr;
  cudaGraphNodeParams parameters = conditional(handle, type, 1);
  CHECK_EQUAL(cudaGraphAddNode(&node, graph, nodes, nullptr, count, &parameters), cudaSuccess);
  CHECK_EQUAL(cudaStreamUpdateCaptureDependencies(stream, &node, nullptr, 1, set_dependencies), cudaSuccess);
  cudaStream_t own = new_stream();
  cudaGraph_t into = parameters.conditional.phGraph_out[0];
  CHECK_EQUAL(cudaStreamBeginCaptureToGraph(own, into, nullptr, nullptr, 0, global_mode), cudaSuccess);
  body(own, handle);
  CHECK_EQUAL(cudaStreamEndCapture(own, nullptr), cudaSuccess);
  CHECK_EQUAL(cudaStreamDestroy(own), cudaSuccess);
  return handle;
}
