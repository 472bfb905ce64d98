// NCCL between processes: one of four ranks, one device each, with a simulator that routes (tests/native/test_nccl.py).
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "check.h"
#include "elements.h"
#include "nccl_interface.h"
#include "phantora/capture.h"
#include "phantora/config.h"
#include "phantora/device.h"
#include "phantora/graph.h"
#include "phantora/memory.h"
#include "phantora/recorder.h"
#include "phantora/streams.h"
#include "phantora/values.h"

namespace phantora::nccl {
namespace {

using values::State;

constexpr int ranks = 4;
constexpr DataType type = DataType::int32;

#define SUCCEEDS(call) CHECK_EQUAL(static_cast<int>(call), static_cast<int>(Result::success))

int rank() { return config().rank; }

// As a program would get it over its own channel from the rank that called ncclGetUniqueId.
UniqueId unique_id(const char* text) {
  UniqueId id{};
  std::strncpy(id.internal, text, sizeof id.internal - 1);
  return id;
}

Comm world(const char* name, int size = ranks, int index = rank()) {
  Comm comm = nullptr;
  SUCCEEDS(ncclCommInitRank(&comm, size, unique_id(name), index));
  return comm;
}

// Device memory of known int32.
class Tensor {
 public:
  explicit Tensor(size_t elements, int value = 0) : data_(memory::allocate(rank(), elements * 4)), elements_(elements) {
    for (size_t i = 0; i < elements; ++i) set(i, value);
    values::mark_known(data_, elements * 4);
  }
  ~Tensor() { memory::release(data_); }
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;

  void set(size_t i, int value) { store(type, data_, i, value); }
  int operator[](size_t i) const { return static_cast<int>(load(type, data_, i)); }
  bool known() const { return values::state(data_, elements_ * 4) == State::known; }
  void* data() const { return data_; }

 private:
  void* data_;
  size_t elements_;
};

class Stream {
 public:
  Stream() : handle_(streams::create(rank(), true, 0)) {}
  ~Stream() { streams::destroy(handle_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void* handle() const { return handle_; }
  StreamId id() const { return streams::find(handle_)->id; }
  void synchronise() const {
    recorder::sync_stream(id());
    values::drain_stream(id());
  }

 private:
  void* handle_;
};

void check_collectives() {
  Comm comm = world("collectives");
  const Stream stream;
  Tensor mine(2, rank() + 1), all(2 * ranks), sum(2), fromRoot(2);
  SUCCEEDS(ncclAllGather(mine.data(), all.data(), 2, type, comm, stream.handle()));
  SUCCEEDS(ncclAllReduce(mine.data(), sum.data(), 2, type, RedOp::sum, comm, stream.handle()));
  SUCCEEDS(ncclBroadcast(mine.data(), fromRoot.data(), 2, type, 3, comm, stream.handle()));
  SUCCEEDS(ncclAlltoAll(all.data(), all.data(), 1, type, comm, stream.handle()));
  stream.synchronise();
  for (int i = 0; i < ranks; ++i) CHECK_EQUAL(all[i], rank() / 2 + 1);
  CHECK_EQUAL(sum[1], 10);
  CHECK_EQUAL(fromRoot[0], 4);
  CHECK(sum.known() && fromRoot.known());
  SUCCEEDS(ncclCommDestroy(comm));
}

// One launch, which costs the host as much as one operation does.
void check_grouped() {
  Comm comm = world("grouped");
  const Stream stream;
  Tensor mine(1, rank() + 1), sum(1), all(ranks);
  SUCCEEDS(ncclGroupStart());
  SUCCEEDS(ncclAllReduce(mine.data(), sum.data(), 1, type, RedOp::sum, comm, stream.handle()));
  SUCCEEDS(ncclAllGather(mine.data(), all.data(), 1, type, comm, stream.handle()));
  SUCCEEDS(ncclAllReduce(mine.data(), mine.data(), 0, type, RedOp::sum, comm, stream.handle()));
  const int64_t before_ns = recorder::now_ns();
  SUCCEEDS(ncclGroupEnd());
  CHECK_EQUAL(recorder::now_ns() - before_ns, phantora::config().launch_ns);
  stream.synchronise();
  CHECK_EQUAL(sum[0], 10);
  for (int i = 0; i < ranks; ++i) CHECK_EQUAL(all[i], i + 1);
  SUCCEEDS(ncclCommDestroy(comm));
}

void check_ring() {
  Comm comm = world("ring");
  const Stream stream;
  Tensor mine(1, 100 + rank()), got(1);
  const int next = (rank() + 1) % ranks, before = (rank() + ranks - 1) % ranks;
  SUCCEEDS(ncclGroupStart());
  SUCCEEDS(ncclSend(mine.data(), 1, type, next, comm, stream.handle()));
  SUCCEEDS(ncclRecv(got.data(), 1, type, before, comm, stream.handle()));
  SUCCEEDS(ncclGroupEnd());
  stream.synchronise();
  CHECK_EQUAL(got[0], 100 + before);
  SUCCEEDS(ncclCommDestroy(comm));
}

// In each pair of ranks, the first receives A, works on it and then gathers X; the second sends A only when it has read
// X. Work on A therefore must not be waited for where the GPU would not wait.
void check_order_that_deadlocks_eager_emulation() {
  const std::string pair = std::to_string(rank() / 2);
  const int me = rank() % 2;
  Comm transfers = world(("A" + pair).c_str(), 2, me), gathers = world(("X" + pair).c_str(), 2, me);
  const Stream side, main;
  Tensor a(1, me == 1 ? 7 : 0), x(1, 10 + me), all(2);
  if (me == 0) {
    SUCCEEDS(ncclRecv(a.data(), 1, type, 1, transfers, side.handle()));
    values::submit(side.id(), [&] { a.set(0, a[0] * 6); });
    SUCCEEDS(ncclAllGather(x.data(), all.data(), 1, type, gathers, main.handle()));
    side.synchronise();
    CHECK_EQUAL(a[0], 42);
  } else {
    SUCCEEDS(ncclAllGather(x.data(), all.data(), 1, type, gathers, main.handle()));
    main.synchronise();
    CHECK_EQUAL(all[0], 10);
    SUCCEEDS(ncclSend(a.data(), 1, type, 0, transfers, side.handle()));
  }
  main.synchronise();
  CHECK_EQUAL(all[1], 11);
  SUCCEEDS(ncclCommDestroy(transfers));
  SUCCEEDS(ncclCommDestroy(gathers));
}

void check_split() {
  Comm comm = world("to split"), part = nullptr, none = nullptr;
  SUCCEEDS(ncclCommSplit(comm, rank() % 2, -rank(), &part, nullptr));
  SUCCEEDS(ncclCommSplit(comm, rank() == 0 ? no_color : 0, 0, &none, nullptr));
  CHECK_EQUAL(none == nullptr, rank() == 0);
  int size = 0, index = -1;
  SUCCEEDS(ncclCommCount(part, &size));
  SUCCEEDS(ncclCommUserRank(part, &index));
  CHECK_EQUAL(size, 2);
  CHECK_EQUAL(index, rank() < 2 ? 1 : 0);
  const Stream stream;
  Tensor mine(1, rank()), all(2);
  SUCCEEDS(ncclAllGather(mine.data(), all.data(), 1, type, part, stream.handle()));
  stream.synchronise();
  CHECK_EQUAL(all[0], rank() % 2 + 2);
  CHECK_EQUAL(all[1], rank() % 2);
  for (Comm each : {part, none, comm}) SUCCEEDS(ncclCommDestroy(each));
}

// Two non-blocking communicators, made and first asked for in different orders.
void check_non_blocking() {
  Config config{};
  config.size = sizeof config;
  config.magic = config_magic;
  config.version = version_code;
  config.split_share = undefined_int;
  const char* names[] = {"first", "second"};
  Comm comms[2] = {};
  const int first = rank() % 2;
  for (const int i : {first, 1 - first}) {
    const Result result = ncclCommInitRankConfig(&comms[i], ranks, unique_id(names[i]), rank(), &config);
    CHECK(result == Result::in_progress);
  }
  for (const int i : {first, 1 - first}) {
    Result state = Result::in_progress;
    SUCCEEDS(ncclCommGetAsyncError(comms[i], &state));
    SUCCEEDS(state);
  }
  const Stream stream;
  Tensor sum(1, 1);
  for (Comm comm : comms) SUCCEEDS(ncclAllReduce(sum.data(), sum.data(), 1, type, RedOp::sum, comm, stream.handle()));
  stream.synchronise();
  CHECK_EQUAL(sum[0], ranks * ranks);
  for (Comm comm : comms) SUCCEEDS(ncclCommDestroy(comm));
}

// Too large to carry values: what was there is unknown afterwards. Then a small one on the same communicator.
void check_large() {
  Comm comm = world("large");
  const Stream stream;
  Tensor large(2u << 20, 1), small(1, 1);
  SUCCEEDS(ncclAllReduce(large.data(), large.data(), 2u << 20, type, RedOp::sum, comm, stream.handle()));
  SUCCEEDS(ncclAllReduce(small.data(), small.data(), 1, type, RedOp::sum, comm, stream.handle()));
  stream.synchronise();
  CHECK(!large.known());
  CHECK_EQUAL(small[0], ranks);
  SUCCEEDS(ncclCommDestroy(comm));
}

// Only rank 1 calls the operation; it gives up, and its stream goes on.
void check_abort() {
  Comm comm = world("aborted");
  const Stream stream;
  Tensor tensor(1, 1);
  if (rank() == 1) {
    SUCCEEDS(ncclAllReduce(tensor.data(), tensor.data(), 1, type, RedOp::sum, comm, stream.handle()));
    CHECK(!values::idle(stream.id()));
  }
  recorder::sleep(1000);
  const int64_t aborted_at = recorder::now_ns();
  SUCCEEDS(ncclCommAbort(comm));
  if (rank() == 1) CHECK_EQUAL(recorder::sync_stream(stream.id()), aborted_at + 1);
  values::drain_all();
  CHECK(tensor.known() == (rank() != 1));
}

// Captures an operation, and launches it once more when its communicator has ended: that ends the rank, too.
void launch_after(Result (*end)(Comm)) {
  Comm comm = world("captured", 1, 0);
  const Stream stream;
  Tensor tensor(1, 1);
  CHECK(captures::begin(stream.id(), rank(), captures::Mode::global) == captures::Error::none);
  SUCCEEDS(ncclAllReduce(tensor.data(), tensor.data(), 1, type, RedOp::sum, comm, stream.handle()));
  graphs::Graph* graph = nullptr;
  CHECK(captures::end(stream.id(), &graph) == captures::Error::none);
  graphs::Executable executable(*graph);
  executable.launch(stream.id());
  SUCCEEDS(end(comm));
  executable.launch(stream.id());
}

struct Case {
  const char* name;
  void (*run)();
};

constexpr Case cases[] = {
    {"collectives", check_collectives},
    {"grouped", check_grouped},
    {"ring", check_ring},
    {"order", check_order_that_deadlocks_eager_emulation},
    {"split", check_split},
    {"non_blocking", check_non_blocking},
    {"large", check_large},
    {"abort", check_abort},
    {"launch_destroyed", [] { launch_after(ncclCommDestroy); }},
    {"launch_aborted", [] { launch_after(ncclCommAbort); }},
    {"launch_finalized", [] { launch_after(ncclCommFinalize); }},
};

}  // namespace
}  // namespace phantora::nccl

int main(int argc, char** argv) {
  using namespace phantora::nccl;
  phantora::device::set_current(rank());
  for (const Case& each : cases) {
    if (argc > 1 && std::strcmp(argv[1], each.name) == 0) each.run();
  }
  return checks_failed();
}
