// One case a run (argv[1]), for a simulator that the test plays: what is recorded, and how replies move the clock.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "check.h"
#include "cuda.h"
#include "phantora/capi.h"
#include "phantora/launch.h"

namespace {

char kernel_stub;

void launch(cudaStream_t stream) {
  CHECK_EQUAL(cudaLaunchKernel(&kernel_stub, {1, 1, 1}, {32, 1, 1}, nullptr, 0, stream), cudaSuccess);
}

cudaStream_t new_stream(unsigned flags = cudaStreamNonBlocking) {
  cudaStream_t stream = nullptr;
  CHECK_EQUAL(cudaStreamCreateWithFlags(&stream, flags), cudaSuccess);
  return stream;
}

cudaEvent_t recorded_event(cudaStream_t stream) {
  cudaEvent_t event = nullptr;
  CHECK_EQUAL(cudaEventCreate(&event), cudaSuccess);
  CHECK_EQUAL(cudaEventRecord(event, stream), cudaSuccess);
  return event;
}

void sync_moves_the_clock() {
  cudaStream_t stream = new_stream();
  launch(stream);
  CHECK_EQUAL(cudaStreamSynchronize(stream), cudaSuccess);
  std::printf("%lld\n", static_cast<long long>(phantora_now_ns()));
}

// The first wait covers them all.
void known_waits() {
  cudaStream_t stream = new_stream(), other = new_stream();
  launch(stream);
  cudaEvent_t event = recorded_event(stream);
  CHECK_EQUAL(cudaStreamWaitEvent(other, event, 0), cudaSuccess);
  CHECK_EQUAL(cudaStreamSynchronize(other), cudaSuccess);
  CHECK_EQUAL(cudaStreamSynchronize(stream), cudaSuccess);
  CHECK_EQUAL(cudaEventSynchronize(event), cudaSuccess);
  CHECK_EQUAL(cudaDeviceSynchronize(), cudaSuccess);
  std::printf("%lld\n", static_cast<long long>(phantora_now_ns()));
}

void implicit_order() {
  cudaStream_t blocking = new_stream(0), free = new_stream();
  launch(blocking);
  launch(nullptr);
  launch(blocking);
  launch(free);
  CHECK_EQUAL(cudaDeviceSynchronize(), cudaSuccess);
}

// Not ready, not ready, and then the thread is spinning and goes forward.
void spinning() {
  cudaStream_t stream = new_stream();
  launch(stream);
  cudaEvent_t event = recorded_event(stream);
  int asked = 0;
  while (cudaEventQuery(event) == cudaErrorNotReady) ++asked;
  CHECK_EQUAL(asked, 2);
  CHECK_EQUAL(cudaEventQuery(event), cudaSuccess);  // known by now
}

// Something is issued between the questions: never taken for spinning.
void patient() {
  cudaStream_t stream = new_stream();
  CHECK_EQUAL(cudaEventQuery(recorded_event(stream)), cudaSuccess);  // nothing before it: no question for the simulator
  launch(stream);
  cudaEvent_t event = recorded_event(stream);
  for (int i = 0; i < 5; ++i) {
    CHECK_EQUAL(cudaEventQuery(event), cudaErrorNotReady);
    launch(stream);
  }
}

void on_observer(std::function<void()> work) {
  std::thread([&] {
    pthread_setname_np(pthread_self(), "pt_nccl_watchdg");
    work();
  }).join();
}

void observer() {
  cudaStream_t stream = new_stream(), later = new_stream();
  launch(stream);
  cudaEvent_t event = recorded_event(stream);
  on_observer([=] {
    CHECK_EQUAL(cudaEventQuery(event), cudaErrorNotReady);
    launch(stream);
    CHECK_EQUAL(cudaStreamSynchronize(stream), cudaSuccess);
    CHECK_EQUAL(cudaEventQuery(event), cudaErrorNotReady);
  });
  // Lane 0 waits for something that waits for it.
  CHECK_EQUAL(cudaStreamWaitEvent(later, event, 0), cudaSuccess);
  CHECK_EQUAL(cudaStreamSynchronize(later), cudaSuccess);
  on_observer([=] { CHECK_EQUAL(cudaEventQuery(event), cudaSuccess); });
}

// Whether a query was certain depends on how far others have come: an observer must not learn from it.
void told() {
  cudaStream_t stream = new_stream();
  launch(stream);
  cudaEvent_t event = recorded_event(stream);
  CHECK_EQUAL(cudaEventQuery(event), cudaSuccess);
  on_observer([=] { CHECK_EQUAL(cudaEventQuery(event), cudaErrorNotReady); });
  CHECK_EQUAL(cudaEventSynchronize(event), cudaSuccess);  // known by now
  on_observer([=] { CHECK_EQUAL(cudaEventQuery(event), cudaSuccess); });
}

void side_thread() {
  cudaStream_t stream = new_stream();
  phantora_sleep_ns(1000);
  launch(stream);
  std::thread([=] {
    CHECK(phantora_now_ns() >= 1000);
    launch(stream);
    CHECK_EQUAL(cudaStreamSynchronize(stream), cudaSuccess);
    launch(stream);
  }).join();
  launch(stream);
}

void autograd_thread() {
  cudaStream_t stream = new_stream();
  std::thread([=] {
    pthread_setname_np(pthread_self(), "pt_autograd_0");
    launch(stream);
  }).join();
}

void correction() {
  cudaStream_t stream = new_stream();
  launch(stream);
  CHECK_EQUAL(cudaStreamSynchronize(stream), cudaSuccess);
  int64_t speculated = phantora_now_ns();
  launch(stream);
  cudaEvent_t event = recorded_event(stream);
  CHECK_EQUAL(cudaEventQuery(event), cudaErrorNotReady);  // the simulator corrects before it answers
  std::printf("%lld %lld\n", static_cast<long long>(speculated), static_cast<long long>(phantora_now_ns()));
  launch(stream);
}

// An op that zeroes a counter before its first kernel, and copies after it.
void op_with_copies() {
  void* counter = nullptr;
  CHECK_EQUAL(cudaMalloc(&counter, 64), cudaSuccess);
  phantora::OpScope op;
  phantora::push_op(&op);
  CHECK_EQUAL(cudaMemset(counter, 0, 64), cudaSuccess);
  launch(nullptr);
  CHECK_EQUAL(cudaMemcpyAsync(counter, static_cast<char*>(counter) + 32, 32, cudaMemcpyDeviceToDevice, nullptr),
              cudaSuccess);
  launch(nullptr);
  phantora::pop_op(&op);
}

// Between the device and each kind of host memory, without being asked to wait.
void host_copies() {
  constexpr size_t staged = 64 << 10, large = staged + 1;
  static char pageable[large], registered[large];
  void *device = nullptr, *pinned = nullptr;
  CHECK_EQUAL(cudaMalloc(&device, large), cudaSuccess);
  CHECK_EQUAL(cudaMallocHost(&pinned, large), cudaSuccess);
  CHECK_EQUAL(cudaHostRegister(registered, large, 0), cudaSuccess);
  auto copy = [](void* to, const void* from, size_t bytes) {
    CHECK_EQUAL(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, nullptr), cudaSuccess);
  };
  for (char* host : {static_cast<char*>(pinned), registered, pageable}) {
    copy(device, host, staged);
    copy(device, host, large);
    copy(host, device, 1);
  }
}

void forked_child() {
  launch(nullptr);
  pid_t child = fork();
  if (child == 0) {
    int64_t now = phantora_now_ns();
    launch(nullptr);
    _exit(phantora_active() || now < 4000 ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK_EQUAL(status, 0);
  launch(nullptr);
}

void waits_for_ever() {
  launch(nullptr);
  cudaDeviceSynchronize();
}

const std::map<std::string, void (*)()> cases = {
    {"known_waits", known_waits},
    {"sync", sync_moves_the_clock},
    {"implicit_order", implicit_order},
    {"spinning", spinning},
    {"patient", patient},
    {"observer", observer},
    {"told", told},
    {"side_thread", side_thread},
    {"autograd", autograd_thread},
    {"correction", correction},
    {"fork", forked_child},
    {"wait", waits_for_ever},
    {"op", op_with_copies},
    {"host_copies", host_copies},
};

}  // namespace

int main(int, char** argv) {
  void** module = __cudaRegisterFatBinary(nullptr);
  __cudaRegisterFunction(module, &kernel_stub, nullptr, "stub", -1, nullptr, nullptr, nullptr, nullptr, nullptr);
  cases.at(argv[1])();
  return checks_failed();
}
