// The recorder's life: who is a rank, connection and farewell, forks, and the flusher thread.
#include <pthread.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "phantora/config.h"
#include "phantora/environment.h"
#include "real_clock.h"
#include "recorder_core.h"

namespace phantora {

namespace {

using wire::RecordKind;

constexpr auto flush_interval = std::chrono::milliseconds(1);

bool is_rank_process() {
  if (!std::getenv(environment::run_dir) || !std::getenv(environment::rank)) return false;
  const char* owner = std::getenv(environment::rank_pid);
  return !owner || std::to_string(getpid()) == owner;
}

// Command line of this process, as a list of arguments.
std::vector<std::string> arguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> out;
  for (std::string argument; std::getline(file, argument, '\0');) out.push_back(argument);
  return out;
}

}  // namespace

Recorder& Recorder::instance() {
  static Recorder* recorder = new Recorder;  // never destroyed: threads and exit handlers use it to the end
  return *recorder;
}

Recorder::Recorder() : inert_(!is_rank_process()), inert_real_ns_(clock_ns(CLOCK_MONOTONIC)) {
  main_lane_.open = true;
  open_lanes_.push_back(&main_lane_);
  pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

void Recorder::before_fork() { instance().mutex_.lock(); }
void Recorder::after_fork_in_parent() { instance().mutex_.unlock(); }

void Recorder::after_fork_in_child() {
  instance().become_inert();
  instance().mutex_.unlock();
}

void Recorder::become_inert() {
  if (!inert_) inert_virtual_ns_ = main_lane_.now_ns();
  inert_ = true;
  inert_real_ns_ = clock_ns(CLOCK_MONOTONIC);
}

bool Recorder::active() const { return !inert_; }

bool Recorder::has_ended() const { return ended_; }

// Connects at the first record, so that processes that never use the GPU never speak.
void Recorder::connect(Lock& lock) {
  if (sink_) return;
  if (config().null_sink) {
    sink_ = open_null_sink(listener());
  } else {
    sink_ = open_socket_sink(config().run_dir + "/sim.sock", listener());
  }
  setenv(environment::rank_pid, std::to_string(getpid()).c_str(), 1);
  say_hello();
  std::thread([this] { run_flusher(); }).detach();
  std::atexit([] { instance().say_goodbye(); });
  flush(lock);
}

Listener Recorder::listener() {
  return {
      .reply = [this](uint64_t request, int64_t value, bool speculated) { on_reply(request, value, speculated); },
      .correction = [this](uint64_t request, int64_t value) { on_correction(request, value); },
      .data =
          [this](std::string_view payload) {
            std::function<void(std::string_view)> handler;
            {
              Lock lock(mutex_);
              handler = data_handler_;
            }
            if (!handler) fail("NCCL data came for a rank that uses no NCCL", "report this as an error of phantora");
            handler(payload);
          },
  };
}

void Recorder::say_hello() {
  std::vector<std::string> argv = arguments();
  bool tells_world = config().world_size > 0;
  wire::Pack pack;
  pack.map(tells_world ? 7 : 5);
  pack.text("protocol").integer(1).text("role").text("rank").text("rank").integer(config().rank);
  if (tells_world) {
    pack.text("world_size").integer(config().world_size).text("ranks_per_node").integer(config().ranks_per_node);
  }
  pack.text("pid").integer(getpid()).text("argv").array(static_cast<uint32_t>(argv.size()));
  for (const std::string& argument : argv) pack.text(argument);
  outbox_.add(wire::FrameType::hello, pack.str());
}

void Recorder::say_goodbye() {
  if (inert_) return;
  std::string pairs;
  uint32_t count = 0;
  auto add = [&](std::string_view key, std::string_view packed) {
    pairs += wire::Pack().text(key).raw(packed).str();
    ++count;
  };
  for (const auto& contribute : farewells_) contribute(add);
  if (!guesses_.empty()) add("guessed", packed_guesses());
  Lock lock(mutex_);
  report_clocks();  // where a clock ends must not depend on when the flusher came by last
  outbox_.add(wire::FrameType::bye, wire::Pack().map(count).raw(pairs).str());
  sink_->close();
  flush(lock);
  ended_ = true;
  become_inert();  // what static destructors do on the GPU no longer matters, and must not wait
}

void Recorder::go_outside(std::string_view what) {
  if (inert_ || this_thread().role != Role::main) return;
  Lock lock(mutex_);
  connect(lock);
  report_clocks();  // a record that comes after this means that the wait is over
  outbox_.add(wire::FrameType::outside, wire::Pack().map(1).text("what").text(what).str());
  flush(lock);
}

void Recorder::declare_guess(const std::string& what) {
  Lock lock(mutex_);
  guesses_.insert(what);
}

std::string Recorder::packed_guesses() {
  Lock lock(mutex_);
  wire::Pack pack;
  pack.array(static_cast<uint32_t>(guesses_.size()));
  for (const std::string& guess : guesses_) pack.text(guess);
  return pack.str();
}

// --- sending

void Recorder::flush(Lock& lock) {
  lock.unlock();
  {
    std::lock_guard sending(send_mutex_);
    lock.lock();
    std::string frames = outbox_.take();
    lock.unlock();
    if (!frames.empty()) sink_->send(frames);
  }
  lock.lock();
}

void Recorder::flush() {
  Lock lock(mutex_);
  if (!inert_ && sink_) flush(lock);
}

void Recorder::run_flusher() {
  pthread_setname_np(pthread_self(), "phantora_flush");
  this_thread().role = Role::observer;
  Lock lock(mutex_);
  for (;;) {
    flusher_wake_.wait(lock, [this] { return flush_wanted_; });
    lock.unlock();
    std::this_thread::sleep_for(flush_interval);
    lock.lock();
    flush_wanted_ = false;
    report_clocks();
    flush(lock);
  }
}

// A lane that computes, and issues nothing, must not hold the simulation back.
void Recorder::report_clocks() {
  for (Lane* lane : open_lanes_) {
    if (!lane->blocked && lane->delta_ns > lane->reported_ns) append(*lane, RecordKind::clock, 0, 0, 0, 0);
  }
}

}  // namespace phantora
