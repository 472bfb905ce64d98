// Values of NCCL operations between members that all live in one process: no simulator is needed.
//   usage: nccl_values_test   (PHANTORA_SINK=null and a machine.conf of 4 devices)
#include <array>
#include <functional>
#include <string>
#include <vector>

#include "check.h"
#include "elements.h"
#include "nccl_interface.h"
#include "phantora/memory.h"
#include "phantora/streams.h"
#include "phantora/values.h"

namespace phantora::nccl {
namespace {

using values::State;
using Buffers = std::vector<void*>;  // one for each member
using Formula = std::function<double(int member, size_t index)>;

constexpr int members = 4;
constexpr size_t count = 6;

#define SUCCEEDS(call) CHECK_EQUAL(static_cast<int>(call), static_cast<int>(Result::success))
#define FAILS(call, code) CHECK_EQUAL(static_cast<int>(call), static_cast<int>(Result::code))

struct World {
  World() { SUCCEEDS(ncclCommInitAll(comms.data(), members, nullptr)); }
  ~World() {
    for (Comm comm : comms) SUCCEEDS(ncclCommDestroy(comm));
  }

  // Issues a call of every member as one group, each on its device's default stream.
  void all(const std::function<Result(int member, Comm)>& call) const {
    SUCCEEDS(ncclGroupStart());
    for (int member = 0; member < members; ++member) SUCCEEDS(call(member, comms[member]));
    SUCCEEDS(ncclGroupEnd());
  }

  std::array<Comm, members> comms{};
};

Buffers allocate(size_t bytes) {
  Buffers buffers;
  for (int member = 0; member < members; ++member) buffers.push_back(memory::allocate(member, bytes));
  return buffers;
}

void release(const Buffers& buffers) {
  for (void* buffer : buffers) memory::release(buffer);
}

Buffers filled(DataType type, size_t elements, const Formula& formula) {
  const size_t bytes = elements * element_bytes(type);
  Buffers buffers = allocate(bytes);
  for (int member = 0; member < members; ++member) {
    for (size_t i = 0; i < elements; ++i) store(type, buffers[member], i, formula(member, i));
    values::mark_known(buffers[member], bytes);
  }
  return buffers;
}

void expect(DataType type, const Buffers& buffers, int member, size_t elements, const Formula& formula) {
  CHECK_EQUAL(static_cast<int>(values::state(buffers[member], elements * element_bytes(type))), 0);
  for (size_t i = 0; i < elements; ++i) CHECK_EQUAL(load(type, buffers[member], i), nearest(type, formula(member, i)));
}

void expect_all(DataType type, const Buffers& buffers, size_t elements, const Formula& formula) {
  for (int member = 0; member < members; ++member) expect(type, buffers, member, elements, formula);
}

// Small, so that sums and products of four are exact in every data type.
double given(int member, size_t index) { return static_cast<double>((static_cast<size_t>(member) + index) % 2 + 1); }

double reduced(RedOp op, size_t index) {
  double result = given(0, index);
  for (int member = 1; member < members; ++member) {
    const double next = given(member, index);
    switch (op) {
      case RedOp::product:
        result *= next;
        break;
      case RedOp::maximum:
        result = std::max(result, next);
        break;
      case RedOp::minimum:
        result = std::min(result, next);
        break;
      default:
        result += next;
    }
  }
  return result;
}

void check_reductions(const World& world, DataType type) {
  for (const RedOp op : {RedOp::sum, RedOp::product, RedOp::maximum, RedOp::minimum}) {
    const Buffers in = filled(type, members * count, given), out = allocate(members * count * element_bytes(type));
    const auto expected = [op](int, size_t i) { return reduced(op, i); };
    world.all([&](int m, Comm comm) { return ncclAllReduce(in[m], out[m], count, type, op, comm, nullptr); });
    expect_all(type, out, count, expected);
    world.all([&](int m, Comm comm) {
      return ncclReduce(in[m], m == 2 ? out[m] : nullptr, count, type, op, 2, comm, nullptr);
    });
    expect(type, out, 2, count, expected);
    world.all([&](int m, Comm comm) { return ncclReduceScatter(in[m], out[m], count, type, op, comm, nullptr); });
    expect_all(type, out, count, [op](int m, size_t i) { return reduced(op, static_cast<size_t>(m) * count + i); });
    world.all([&](int m, Comm comm) { return ncclAllReduce(in[m], in[m], count, type, op, comm, nullptr); });
    expect_all(type, in, count, expected);
    release(in), release(out);
  }
}

void check_average(const World& world, DataType type) {
  const Buffers buffers = filled(type, count, [](int member, size_t) { return 4.0 * (member % 2); });
  world.all([&](int m, Comm comm) {
    return ncclAllReduce(buffers[m], buffers[m], count, type, RedOp::average, comm, nullptr);
  });
  expect_all(type, buffers, count, [](int, size_t) { return 2.0; });
  release(buffers);
}

void check_scaled_sum(const World& world, DataType type, ScalarResidence residence) {
  const Buffers buffers = filled(type, count, [](int, size_t) { return 1.0; });
  const Buffers scalars = filled(type, 1, [](int member, size_t) { return member + 1.0; });
  std::array<RedOp, members> ops;
  for (int m = 0; m < members; ++m) {
    uint64_t immediate = 0;
    store(type, &immediate, 0, m + 1.0);
    void* scalar = residence == ScalarResidence::device ? scalars[m] : &immediate;
    SUCCEEDS(ncclRedOpCreatePreMulSum(&ops[m], scalar, type, residence, world.comms[m]));
  }
  world.all(
      [&](int m, Comm comm) { return ncclAllReduce(buffers[m], buffers[m], count, type, ops[m], comm, nullptr); });
  expect_all(type, buffers, count, [](int, size_t) { return 10.0; });
  for (int m = 0; m < members; ++m) SUCCEEDS(ncclRedOpDestroy(ops[m], world.comms[m]));
  FAILS(ncclRedOpDestroy(ops[0], world.comms[0]), invalid_argument);
  FAILS(ncclAllReduce(buffers[0], buffers[0], count, type, ops[0], world.comms[0], nullptr), invalid_argument);
  release(buffers), release(scalars);
}

void check_moves(const World& world, DataType type) {
  const size_t bytes = element_bytes(type);
  const auto own = [](int member, size_t i) { return static_cast<double>(member * 10) + static_cast<double>(i); };
  const Buffers in = filled(type, members * count, own), out = allocate(members * count * bytes);

  world.all([&](int m, Comm comm) { return ncclBroadcast(in[m], out[m], count, type, 1, comm, nullptr); });
  expect_all(type, out, count, [&](int, size_t i) { return own(1, i); });
  world.all([&](int m, Comm comm) { return ncclAllGather(in[m], out[m], count, type, comm, nullptr); });
  const auto gathered = [&](int, size_t i) { return own(static_cast<int>(i / count), i % count); };
  expect_all(type, out, members * count, gathered);
  world.all(
      [&](int m, Comm comm) { return ncclGather(in[m], m == 3 ? out[m] : nullptr, count, type, 3, comm, nullptr); });
  expect(type, out, 3, members * count, gathered);
  world.all(
      [&](int m, Comm comm) { return ncclScatter(m == 2 ? in[m] : nullptr, out[m], count, type, 2, comm, nullptr); });
  expect_all(type, out, count, [&](int m, size_t i) { return own(2, static_cast<size_t>(m) * count + i); });
  world.all([&](int m, Comm comm) { return ncclAlltoAll(in[m], out[m], count, type, comm, nullptr); });
  expect_all(type, out, members * count, [&](int m, size_t i) {
    return own(static_cast<int>(i / count), static_cast<size_t>(m) * count + i % count);
  });

  // In place: the member's own block of the gathered buffer; then the whole buffer.
  world.all([&](int m, Comm comm) {
    void* mine = static_cast<char*>(out[m]) + static_cast<size_t>(m) * count * bytes;
    for (size_t i = 0; i < count; ++i) store(type, mine, i, own(m, i));
    return ncclAllGather(mine, out[m], count, type, comm, nullptr);
  });
  expect_all(type, out, members * count, gathered);
  world.all([&](int m, Comm comm) { return ncclBcast(in[m], count, type, 0, comm, nullptr); });
  expect_all(type, in, count, [&](int, size_t i) { return own(0, i); });
  release(in), release(out);
}

// Every member sends to the next one and to itself, two messages each.
void check_transfers(const World& world) {
  const DataType type = DataType::int32;
  const Buffers in = filled(type, count, [](int m, size_t i) { return m * 100.0 + static_cast<double>(i); });
  const Buffers ring = allocate(count * 4), self = allocate(count * 4);
  world.all([&](int m, Comm comm) {
    const int next = (m + 1) % members, before = (m + members - 1) % members;
    char* second = static_cast<char*>(ring[m]) + 8;
    SUCCEEDS(ncclSend(in[m], 2, type, next, comm, nullptr));
    SUCCEEDS(ncclRecv(ring[m], 2, type, before, comm, nullptr));
    SUCCEEDS(ncclSend(static_cast<char*>(in[m]) + 8, count - 2, type, next, comm, nullptr));
    SUCCEEDS(ncclSend(in[m], count, type, m, comm, nullptr));
    SUCCEEDS(ncclRecv(self[m], count, type, m, comm, nullptr));
    return ncclRecv(second, count - 2, type, before, comm, nullptr);
  });
  expect_all(type, ring, count,
             [](int m, size_t i) { return (m + members - 1) % members * 100.0 + static_cast<double>(i); });
  expect_all(type, self, count, [](int m, size_t i) { return m * 100.0 + static_cast<double>(i); });
  release(in), release(ring), release(self);
}

// Part of one member's buffer is unknown: a gather keeps that apart, a reduction taints those elements.
void check_unknown(const World& world) {
  const DataType type = DataType::int64;
  const Buffers in = filled(type, count, [](int, size_t i) { return static_cast<double>(i); });
  const Buffers out = allocate(members * count * 8);
  values::mark_unknown(static_cast<char*>(in[1]) + 8, 16);
  world.all([&](int m, Comm comm) { return ncclAllGather(in[m], out[m], count, type, comm, nullptr); });
  for (int m = 0; m < members; ++m) {
    const char* of_1 = static_cast<char*>(out[m]) + count * 8;
    CHECK(values::state(out[m], count * 8 + 8) == State::known);
    CHECK(values::state(of_1 + 8, 16) == State::unknown);
    CHECK(values::state(of_1 + 24, (count - 3) * 8 + 2 * count * 8) == State::known);
  }
  world.all([&](int m, Comm comm) { return ncclAllReduce(in[m], in[m], count, type, RedOp::sum, comm, nullptr); });
  for (int m = 0; m < members; ++m) {
    CHECK(values::state(in[m], 8) == State::known);
    CHECK(values::state(static_cast<char*>(in[m]) + 8, 16) == State::tainted);
    CHECK(values::state(static_cast<char*>(in[m]) + 24, 24) == State::known);
    CHECK_EQUAL(load(type, in[m], 2), 6);  // zero counts for what is unknown
    CHECK_EQUAL(load(type, in[m], 3), 12);
  }
  release(in), release(out);
}

void check_large(const World& world) {
  const size_t bytes = 16u << 20;
  const Buffers buffers = allocate(bytes);
  for (void* buffer : buffers) values::mark_known(buffer, bytes);
  world.all([&](int m, Comm comm) {
    return ncclAllReduce(buffers[m], buffers[m], bytes, DataType::uint8, RedOp::sum, comm, nullptr);
  });
  for (void* buffer : buffers) CHECK(values::state(buffer, 1) == State::unknown);
  release(buffers);
}

void check_arguments(const World& world) {
  const Buffers buffers = filled(DataType::float32, count, given);
  void* buffer = buffers[0];
  Comm comm = world.comms[0];
  std::array<float, count> on_host{};
  int number = 0;
  Comm none = nullptr;
  SUCCEEDS(ncclGetVersion(&number));
  CHECK_EQUAL(number, 23007);
  SUCCEEDS(ncclCommCount(comm, &number));
  CHECK_EQUAL(number, members);
  SUCCEEDS(ncclCommUserRank(world.comms[3], &number));
  CHECK_EQUAL(number, 3);
  SUCCEEDS(ncclCommCuDevice(world.comms[3], &number));
  CHECK_EQUAL(number, 3);
  FAILS(ncclCommCount(nullptr, &number), invalid_argument);
  FAILS(ncclBroadcast(buffer, buffer, count, DataType::float32, members, comm, nullptr), invalid_argument);
  FAILS(ncclBroadcast(buffer, buffer, count, static_cast<DataType>(99), 0, comm, nullptr), invalid_argument);
  FAILS(ncclAllReduce(buffer, buffer, count, DataType::float32, static_cast<RedOp>(77), comm, nullptr),
        invalid_argument);
  FAILS(ncclAllReduce(on_host.data(), buffer, count, DataType::float32, RedOp::sum, comm, nullptr), invalid_argument);
  FAILS(ncclAllReduce(buffer, buffers[1], count, DataType::float32, RedOp::sum, comm, nullptr), invalid_argument);
  CHECK(std::string(ncclGetLastError(comm)).find("device 1") != std::string::npos);
  FAILS(ncclSend(buffer, count, DataType::float32, -1, comm, nullptr), invalid_argument);
  FAILS(ncclAllReduce(buffer, buffer, count, DataType::float32, RedOp::sum, comm, &number), unhandled_cuda_error);
  FAILS(ncclCommInitRank(&none, 2, UniqueId{}, 2), invalid_argument);
  CHECK(none == nullptr);
  FAILS(ncclGroupEnd(), invalid_usage);
  SUCCEEDS(ncclAllReduce(nullptr, nullptr, 0, DataType::float32, RedOp::sum, comm, nullptr));

  // An error voids its whole group.
  SUCCEEDS(ncclGroupStart());
  SUCCEEDS(ncclAllReduce(buffer, buffer, count, DataType::float32, RedOp::sum, comm, nullptr));
  FAILS(ncclSend(buffer, count, DataType::float32, 9, comm, nullptr), invalid_argument);
  FAILS(ncclGroupEnd(), invalid_argument);

  void* handle = nullptr;
  SUCCEEDS(ncclCommRegister(comm, buffer, 4 * count, &handle));
  SUCCEEDS(ncclCommDeregister(comm, handle));
  FAILS(ncclCommDeregister(comm, handle), invalid_argument);
  SUCCEEDS(ncclMemAlloc(&handle, 1 << 20));
  SUCCEEDS(ncclMemFree(handle));
  release(buffers);
}

// The members 0, 2 and 3 part from 1, in reverse order.
void check_split(const World& world) {
  std::array<Comm, members> parts{};
  SUCCEEDS(ncclGroupStart());
  for (int m = 0; m < members; ++m)
    SUCCEEDS(ncclCommSplit(world.comms[m], m == 1 ? no_color : 7, -m, &parts[m], nullptr));
  SUCCEEDS(ncclGroupEnd());
  CHECK(parts[1] == nullptr);
  int index = -1, size = 0;
  SUCCEEDS(ncclCommUserRank(parts[0], &index));
  SUCCEEDS(ncclCommCount(parts[0], &size));
  CHECK_EQUAL(index, 2);
  CHECK_EQUAL(size, 3);
  const Buffers in = filled(DataType::int8, 1, [](int m, size_t) { return m; }), out = allocate(3);
  SUCCEEDS(ncclGroupStart());
  for (const int m : {0, 2, 3}) SUCCEEDS(ncclAllGather(in[m], out[m], 1, DataType::int8, parts[m], nullptr));
  SUCCEEDS(ncclGroupEnd());
  for (const int m : {0, 2, 3}) {
    CHECK_EQUAL(load(DataType::int8, out[m], 0), 3);
    CHECK_EQUAL(load(DataType::int8, out[m], 1), 2);
    CHECK_EQUAL(load(DataType::int8, out[m], 2), 0);
    SUCCEEDS(ncclCommDestroy(parts[m]));
  }
  release(in), release(out);
}

// Member 0 waits for the others, which never come; what is behind it on the stream goes on after the abort.
void check_abort() {
  std::array<Comm, members> comms{};
  SUCCEEDS(ncclCommInitAll(comms.data(), members, nullptr));
  const Buffers buffers = filled(DataType::float32, count, given);
  SUCCEEDS(ncclAllReduce(buffers[0], buffers[0], count, DataType::float32, RedOp::sum, comms[0], nullptr));
  const auto stream = streams::find(nullptr)->id;
  CHECK(!values::idle(stream));
  for (Comm comm : comms) SUCCEEDS(ncclCommAbort(comm));
  CHECK(values::idle(stream));
  values::drain_all();
  CHECK(values::state(buffers[0], 4) == State::unknown);
  FAILS(ncclCommAbort(comms[0]), invalid_argument);
  CHECK(std::string(ncclGetLastError(nullptr)).find("(member 0 of 4), which has been") != std::string::npos);
  release(buffers);
}

// Calls on a communicator that has ended, and in a group that it does not live to see the end of.
void check_ended() {
  Comm comm = nullptr;
  const Buffers buffers = filled(DataType::float32, count, given);
  const auto call = [&] {
    return ncclAllReduce(buffers[0], buffers[0], count, DataType::float32, RedOp::sum, comm, nullptr);
  };
  for (const auto end : {ncclCommDestroy, ncclCommAbort}) {
    SUCCEEDS(ncclCommInitAll(&comm, 1, nullptr));
    SUCCEEDS(ncclGroupStart());
    SUCCEEDS(call());
    SUCCEEDS(end(comm));
    FAILS(ncclGroupEnd(), invalid_usage);
    FAILS(call(), invalid_argument);
  }
  SUCCEEDS(ncclCommInitAll(&comm, 1, nullptr));
  SUCCEEDS(ncclCommFinalize(comm));
  FAILS(call(), invalid_usage);
  FAILS(ncclCommFinalize(comm), invalid_usage);
  Comm child = nullptr;
  FAILS(ncclCommSplit(comm, 0, 0, &child, nullptr), invalid_usage);
  SUCCEEDS(ncclCommDestroy(comm));
  release(buffers);
}

// What NCCL itself holds is taken from the device, and given back.
void check_device_memory() {
  size_t free_before, free_with, free_after, total;
  memory::usage(0, &free_before, &total);
  {
    const World world;
    memory::usage(0, &free_with, &total);
  }
  memory::usage(0, &free_after, &total);
  CHECK(free_before - free_with > 10u << 20);
  CHECK_EQUAL(free_after, free_before);
}

void check_everything() {
  const World world;
  for (const DataType type : all_types) {
    check_reductions(world, type);
    check_average(world, type);
    check_scaled_sum(world, type, ScalarResidence::device);
    check_scaled_sum(world, type, ScalarResidence::host_immediate);
    check_moves(world, type);
  }
  check_transfers(world);
  check_unknown(world);
  check_large(world);
  check_arguments(world);
  check_split(world);
  check_abort();
  check_ended();
  check_device_memory();
}

}  // namespace
}  // namespace phantora::nccl

int main() {
  phantora::nccl::check_everything();
  return checks_failed();
}
