// Conditional nodes of CUDA graphs. Case "semantics": what programs can see, without a simulator; but for the kernel
// that sets conditions, which a GPU would need the code of, and unknown predicates, all of it holds there, too. The
// others: what a launch records, and how those end that nobody can know the condition of.
#include <functional>
#include <map>
#include <string>

#include "conditional_nodes.h"
#include "phantora/counters.h"
#include "phantora/graph.h"
#include "phantora/kernels.h"

namespace {

// A graph of one conditional node, whose condition has a default; the bodies set `memory` to their number and one.
cudaGraph_t with_default(unsigned value, int type, unsigned size, void* memory, cudaStream_t stream) {
  cudaGraph_t graph = new_graph();
  cudaGraphNode_t node = nullptr;
  cudaGraphNodeParams parameters = conditional(new_handle(graph, value, assign_default), type, size);
  CHECK_EQUAL(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &parameters), cudaSuccess);
  CHECK_EQUAL(type_of(node), conditional_node);
  for (unsigned i = 0; i < size; ++i) {
    cudaGraph_t body = parameters.conditional.phGraph_out[i], ended = nullptr;
    CHECK_EQUAL(cudaStreamBeginCaptureToGraph(stream, body, nullptr, nullptr, 0, global_mode), cudaSuccess);
    set_memory(memory, static_cast<int>(i) + 1, stream);
    CHECK_EQUAL(cudaStreamEndCapture(stream, &ended), cudaSuccess);
    CHECK(ended == body);
    CHECK_EQUAL(node_count(body), 1u);
  }
  return graph;
}

// --- semantics

void test_defaults_choose() {
  struct Case {
    unsigned value;
    int type;
    unsigned size;
    int result;  // 0: no body has run
  };
  constexpr Case cases[] = {
      {1, if_type, 1, 1},    {7, if_type, 1, 1},     {0, if_type, 1, 0},     {1, if_type, 2, 1},     {0, if_type, 2, 2},
      {0, while_type, 1, 0}, {0, switch_type, 3, 1}, {2, switch_type, 3, 3}, {3, switch_type, 3, 0},
  };
  cudaStream_t stream = new_stream();
  auto* memory = on_device<char>({0});
  for (const Case& each : cases) {
    cudaGraph_t graph = with_default(each.value, each.type, each.size, memory, stream);
    cudaGraphExec_t executable = instantiated(graph);
    CHECK_EQUAL(cudaGraphDestroy(graph), cudaSuccess);  // the executable outlives it
    for (int i = 0; i < 2; ++i) {
      put<char>(memory, {0});
      run(executable, stream);
      CHECK_EQUAL(value_of(memory), each.result);
    }
    CHECK_EQUAL(cudaGraphExecDestroy(executable), cudaSuccess);
  }
}

// The predicate is what it is when the replay comes to it: here, what an earlier node of the graph has copied.
void test_predicates() {
  cudaStream_t stream = new_stream();
  auto* source = flags_on_device();
  auto* flag = flags_on_device();
  auto* memory = on_device<char>({0, 0});
  cudaGraph_t graph = captured(stream, [&] {
    CHECK_EQUAL(cudaMemcpyAsync(flag, source, 1, cudaMemcpyDeviceToDevice, stream), cudaSuccess);
    capture_conditional(stream, if_type, flag, [&](cudaStream_t own, auto) { set_memory(memory, 1, own); });
    CHECK_EQUAL(cudaMemcpyAsync(memory + 1, memory, 1, cudaMemcpyDeviceToDevice, stream), cudaSuccess);
  });
  CHECK_EQUAL(node_count(graph), 4u);
  cudaGraphExec_t executable = instantiated(graph);
  for (bool taken : {true, false, true}) {
    put_flags(source, taken);
    put<char>(memory, {0, 9});
    run(executable, stream);
    CHECK_EQUAL(value_of(memory + 1), taken ? 1 : 0);  // after the body
    CHECK_EQUAL(value_of(flag), taken ? 1 : 0);        // the kernel that reads it leaves it alone
  }
}

// As often as there are flags at the array's front, in each launch anew; in each round, a body in the body.
void test_loops() {
  cudaStream_t stream = new_stream();
  auto* flags = flags_on_device();
  auto* second = on_device<char>(numbers);
  auto* counted = on_device<char>(numbers);
  auto* seen = on_device<char>({0});
  char* room = on_device<char>(numbers);
  cudaGraph_t graph = captured(stream, [&] {
    capture_conditional(stream, while_type, flags, [&](cudaStream_t own, cudaGraphConditionalHandle handle) {
      shift(counted, room, own);
      shift(second, room, own);
      capture_conditional(own, if_type, reinterpret_cast<bool*>(second), [&](cudaStream_t inner, auto) {
        CHECK_EQUAL(cudaMemcpyAsync(seen, counted, 1, cudaMemcpyDeviceToDevice, inner), cudaSuccess);
      });
      shift(reinterpret_cast<char*>(flags), room, own);
      set_condition(handle, flags, own);
    });
  });
  cudaGraphExec_t executable = instantiated(graph);
  for (size_t rounds : {3u, 0u, 5u, 1u}) {
    put_flags(flags, rounds);
    put(counted, numbers);
    put<char>(second, {0, 0, 1, 0, 0, 1, 0, 0});  // taken in rounds 2 and 5
    put<char>(seen, {0});
    run(executable, stream);
    CHECK_EQUAL(value_of(counted), static_cast<int>(rounds));
    CHECK_EQUAL(value_of(seen), rounds >= 5 ? 5 : rounds >= 2 ? 2 : 0);
  }
}

void test_loop_in_a_branch() {
  cudaStream_t stream = new_stream();
  auto* flags = flags_on_device();
  auto* taken = flags_on_device();
  auto* counted = on_device<char>(numbers);
  char* room = on_device<char>(numbers);
  cudaGraphExec_t executable = instantiated(captured(stream, [&] {
    capture_conditional(stream, if_type, taken, [&](cudaStream_t own, auto) {
      capture_conditional(own, while_type, flags, [&](cudaStream_t inner, cudaGraphConditionalHandle handle) {
        shift(counted, room, inner);
        shift(reinterpret_cast<char*>(flags), room, inner);
        set_condition(handle, flags, inner);
      });
    });
  }));
  for (bool outer : {true, false}) {
    put_flags(taken, outer);
    put_flags(flags, 4);
    put(counted, numbers);
    run(executable, stream);
    CHECK_EQUAL(value_of(counted), outer ? 4 : 0);
  }
}

// Of the emulation alone: nothing has computed the predicate, so it is false, and counted as a read of such a value.
void test_unknown_predicates() {
  cudaStream_t stream = new_stream();
  bool* flag = flags_on_device();
  auto* memory = on_device<char>({5});
  cudaGraphExec_t executable = instantiated(captured(stream, [&] {
    capture_conditional(stream, if_type, flag, [&](cudaStream_t own, auto) { set_memory(memory, 1, own); });
  }));
  uint64_t before = phantora::counters::unknown_reads.value;
  run(executable, stream);
  CHECK_EQUAL(value_of(memory), 5);
  CHECK_EQUAL(phantora::counters::unknown_reads.value - before, 1u);
}

void test_what_is_refused() {
  cudaStream_t stream = new_stream();
  cudaGraph_t graph = new_graph(), copy = nullptr;
  cudaGraphNode_t node = nullptr;
  cudaGraphConditionalHandle handle = 0;
  CHECK_EQUAL(cudaGraphConditionalHandleCreate(&handle, graph, 0, 2), cudaErrorInvalidValue);
  CHECK_EQUAL(cudaGraphConditionalHandleCreate(nullptr, graph, 0, 0), cudaErrorInvalidValue);
  handle = new_handle(graph, 0, assign_default);
  struct Case {
    cudaGraphConditionalHandle handle;
    int type;
    unsigned size;
  };
  for (const Case& each : {Case{handle, while_type, 2}, Case{handle, if_type, 3}, Case{handle, switch_type, 0},
                           Case{handle, 3, 1}, Case{12345, if_type, 1}}) {
    cudaGraphNodeParams parameters = conditional(each.handle, each.type, each.size);
    CHECK_EQUAL(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &parameters), cudaErrorInvalidValue);
  }
  CHECK_EQUAL(node_count(graph), 0u);

  // A graph with conditional nodes is neither cloned nor part of another; a body is its node's.
  cudaGraphNodeParams parameters = conditional(handle, if_type, 1);
  CHECK_EQUAL(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &parameters), cudaSuccess);
  cudaGraph_t body = parameters.conditional.phGraph_out[0];
  CHECK(cudaGraphClone(&copy, graph) != cudaSuccess);
  cudaGraphNodeParams child = {};
  child.type = graph_node;
  child.graph = {graph, 0};
  CHECK(cudaGraphAddNode(&node, new_graph(), nullptr, nullptr, 0, &child) != cudaSuccess);
  CHECK(cudaGraphDestroy(body) != cudaSuccess);
  CHECK_EQUAL(node_count(body), 0u);

  cudaGraphExec_t executable = instantiated(graph);
  CHECK_EQUAL(cudaStreamBeginCapture(stream, global_mode), cudaSuccess);
  CHECK(cudaGraphLaunch(executable, stream) != cudaSuccess);
  cudaStreamEndCapture(stream, &copy);
  CHECK_EQUAL(cudaGraphExecDestroy(executable), cudaSuccess);

  // Host functions cannot be in a body.
  cudaGraphNodeParams host = {};
  host.type = host_node;
  host.host = {[](void*) {}, nullptr};
  CHECK_EQUAL(cudaGraphAddNode(&node, body, nullptr, nullptr, 0, &host), cudaSuccess);
  CHECK(cudaGraphInstantiate(&executable, graph, 0) != cudaSuccess);
  CHECK_EQUAL(cudaGraphDestroy(graph), cudaSuccess);
  CHECK(phantora::graphs::find_graph(body) == nullptr);  // went with it
  cudaGetLastError();
}

void test_updates() {
  cudaStream_t stream = new_stream();
  auto* memory = on_device<char>({0});
  cudaGraphExec_t executable = instantiated(with_default(1, if_type, 2, memory, stream));
  cudaGraphExecUpdateResultInfo result = {};
  CHECK_EQUAL(cudaGraphExecUpdate(executable, with_default(0, if_type, 2, memory, stream), &result), cudaSuccess);
  run(executable, stream);
  CHECK_EQUAL(value_of(memory), 2);  // defaults come along
  CHECK_EQUAL(cudaGraphExecUpdate(executable, with_default(0, switch_type, 2, memory, stream), &result),
              cudaErrorGraphExecUpdateFailure);
  CHECK_EQUAL(cudaGraphExecUpdate(executable, with_default(0, if_type, 1, memory, stream), &result),
              cudaErrorGraphExecUpdateFailure);
  cudaGetLastError();
}

void semantics() {
  test_defaults_choose();
  test_predicates();
  test_loops();
  test_loop_in_a_branch();
  test_unknown_predicates();
  test_what_is_refused();
  test_updates();
}

// --- records

// Beside a branch with a kernel of its own, a loop that goes round twice: neither waits for the other.
void beside() {
  cudaStream_t stream = new_stream(), side = new_stream();
  auto* flags = flags_on_device();
  char* room = on_device<char>(numbers);
  put_flags(flags, 2);
  cudaGraphExec_t executable = instantiated(captured(stream, [&] {
    follow(side, stream);
    capture_conditional(stream, while_type, flags, [&](cudaStream_t own, cudaGraphConditionalHandle handle) {
      shift(reinterpret_cast<char*>(flags), room, own);
      set_condition(handle, flags, own);
    });
    launch(side);
    follow(stream, side);
    launch(stream);
  }));
  CHECK_EQUAL(cudaStreamSynchronize(stream), cudaSuccess);
  CHECK_EQUAL(cudaGraphLaunch(executable, stream), cudaSuccess);
}

// --- conditions that nobody knows

void launch_conditional(const std::function<void(cudaStream_t, cudaGraphConditionalHandle)>& before, unsigned flags) {
  cudaStream_t stream = new_stream();
  auto* memory = on_device<char>({0});
  cudaGraph_t graph = new_graph();
  cudaGraphConditionalHandle handle = new_handle(graph, 1, flags);
  CHECK_EQUAL(cudaStreamBeginCaptureToGraph(stream, graph, nullptr, nullptr, 0, global_mode), cudaSuccess);
  before(stream, handle);
  const cudaGraphNode_t* nodes = nullptr;
  size_t count = 0;
  int status = 0;
  CHECK_EQUAL(cudaStreamGetCaptureInfo(stream, &status, nullptr, nullptr, &nodes, nullptr, &count), cudaSuccess);
  cudaGraphNode_t node = nullptr;
  cudaGraphNodeParams parameters = conditional(handle, while_type, 1);
  CHECK_EQUAL(cudaGraphAddNode(&node, graph, nodes, nullptr, count, &parameters), cudaSuccess);
  CHECK_EQUAL(cudaStreamUpdateCaptureDependencies(stream, &node, nullptr, 1, set_dependencies), cudaSuccess);
  CHECK_EQUAL(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  cudaGraphNodeParams set = {};
  set.type = memset_node;
  set.memset = {memory, 1, 1, 1, 1, 1};
  CHECK_EQUAL(cudaGraphAddNode(&node, parameters.conditional.phGraph_out[0], nullptr, nullptr, 0, &set), cudaSuccess);
  run(instantiated(graph), stream);
}

void unset() {
  launch_conditional([](cudaStream_t stream, auto) { launch(stream); }, 0);
}

void endless() {
  launch_conditional([](cudaStream_t stream, auto) { launch(stream); }, assign_default);
}

// A kernel of the program's own takes the condition, in a struct.
void foreign() {
  using phantora::kernels::Kernel;
  phantora::code::KernelCode code;
  code.parameters = {{0, 4}, {8, 16}};
  Kernel* kernel = phantora::kernels::make("decide", code);
  launch_conditional(
      [kernel](cudaStream_t stream, cudaGraphConditionalHandle handle) {
        int threshold = 3;
        cudaGraphConditionalHandle both[2] = {0, handle};
        void* arguments[] = {&threshold, both};
        CHECK_EQUAL(cudaLaunchKernel(kernel, {1, 1, 1}, {1, 1, 1}, arguments, 0, stream), cudaSuccess);
      },
      assign_default);
}

const std::map<std::string, void (*)()> cases = {
    {"semantics", semantics}, {"beside", beside}, {"unset", unset}, {"endless", endless}, {"foreign", foreign},
};

}  // namespace

int main(int, char** argv) {
  register_kernel(&kernel_stub, "stub");
  register_kernel(&setter_stub, setter_name);
  cases.at(argv[1])();
  return checks_failed();
}
