// Copies and sets of emulated device memory, with the states of their bytes, through the runtime library.
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "phantora/config.h"
#include "phantora/counters.h"
#include "phantora/launch.h"
#include "phantora/memory.h"
#include "phantora/values.h"

using namespace phantora;
using values::State;

namespace {

constexpr StreamId stream = 0;

uint64_t unknown_reads() { return counters::unknown_reads.value.load(); }

std::vector<unsigned char> read(const void* device, size_t bytes) {
  std::vector<unsigned char> host(bytes, 0xee);
  values::copy(stream, host.data(), device, bytes);
  return host;
}

bool all(const std::vector<unsigned char>& bytes, unsigned char value) {
  for (unsigned char byte : bytes) {
    if (byte != value) return false;
  }
  return true;
}

void check_small_copies(char* device) {
  std::string text = "known bytes";
  CHECK(values::state(device, text.size()) == State::unknown);
  CHECK(all(read(device, 16), 0));
  CHECK_EQUAL(unknown_reads(), 1u);

  values::copy(stream, device, text.data(), text.size());
  CHECK(values::state(device, text.size()) == State::known);
  CHECK(std::memcmp(read(device, text.size()).data(), text.data(), text.size()) == 0);
  CHECK_EQUAL(unknown_reads(), 1u);

  values::copy(stream, device + 100, device, 32);  // the rest of it is unknown, and stays so
  CHECK(values::state(device + 100, text.size()) == State::known);
  CHECK(values::state(device + 100 + text.size(), 1) == State::unknown);

  values::copy(stream, device + 4, device, text.size());  // overlapping
  CHECK(std::memcmp(read(device + 4, text.size()).data(), text.data(), text.size()) == 0);
}

void check_large_memory(char* device, size_t bytes) {
  values::set(stream, device, 0xab, 64);
  values::set(stream, device, 0, bytes);
  CHECK(values::state(device, bytes) == State::known);
  CHECK(all(read(device, 64), 0));

  values::set(stream, device, 1, bytes);
  CHECK(values::state(device, bytes) == State::unknown);

  values::set(stream, device, 7, 64);
  std::vector<char> host(config().value_copy_limit_bytes + 1, 1);
  values::copy(stream, device, host.data(), host.size());
  CHECK(values::state(device, 64) == State::unknown);
  CHECK(all(read(device, 64), 0));  // nothing stale
}

void check_readable(char* device) {
  values::mark_unknown(device, 300);
  values::set(stream, device + 100, 5, 100);
  std::memset(device, 9, 100);  // what lies there does not matter
  values::make_readable(device, 300);
  CHECK(values::state(device, 100) == State::tainted);
  CHECK(values::state(device + 100, 100) == State::known);
  CHECK_EQUAL(static_cast<int>(device[50]), 0);
  CHECK_EQUAL(static_cast<int>(device[150]), 5);
}

void check_hold(char* device) {
  values::set(stream, device, 3, 8);
  {
    values::Hold hold;
    values::set(stream, device, 4, 8);
    values::copy(stream, device, "12345678", 8);
    CHECK(all(read(device, 8), 3));  // reading goes on
  }
  CHECK(all(read(device, 8), 3));
}

struct Message : values::Exchange {
  explicit Message(char* to) : target(to) {}
  void start() override {}
  bool ready() override { return arrived; }
  void apply() override {
    std::memset(target, 8, 8);
    values::mark_known(target, 8);
  }
  char* target;
  std::atomic<bool> arrived{false};
};

void check_lazy_order(char* device) {
  auto message = std::make_shared<Message>(device);
  values::submit(stream, message);
  char host[8] = {1, 1, 1, 1, 1, 1, 1, 1}, result[8];
  values::copy(stream, device + 8, host, 8);  // plain memory is read at once
  std::memset(host, 2, 8);
  values::record(stream, 1);
  values::wait(1, 1);
  values::copy(1, device + 16, device, 8);
  values::copy(1, result, device + 16, 8);
  CHECK(!values::idle(stream) && !values::idle(1));
  std::thread reader([&message] {
    message->arrived = true;
    values::exchange_arrived();
  });
  values::drain_stream(1);
  CHECK_EQUAL(static_cast<int>(result[7]), 8);
  values::drain_all();
  CHECK(all(read(device + 8, 8), 1));
  reader.join();
}

void check_carried(char* device) {
  OpScope scope;
  push_op(&scope);
  values::set(stream, device, 0, 8);
  values::copy(stream, device, "12345678", 8);
  pop_op(&scope);
  CHECK_EQUAL(scope.carried, 2u);
}

}  // namespace

int main() {
  size_t bytes = 64 << 20;
  char* device = static_cast<char*>(memory::allocate(0, bytes));
  check_small_copies(device);
  check_large_memory(device, bytes);
  check_readable(device);
  check_hold(device);
  check_lazy_order(device);
  check_carried(device);
  return checks_failed();
}
