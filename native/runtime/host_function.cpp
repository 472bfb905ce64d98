#include "phantora/host_function.h"

#include <pthread.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "phantora/capture.h"
#include "phantora/config.h"
#include "phantora/launch.h"
#include "phantora/values.h"

namespace phantora {

namespace {

// Runs functions one after another, like the driver's callback thread.
class Worker {
 public:
  void post(std::function<void()> work) {
    std::lock_guard lock(mutex_);
    if (!started_) {
      started_ = true;
      std::thread([this] { run(); }).detach();
    }
    queue_.push_back(std::move(work));
    wake_.notify_one();
  }

 private:
  void run() {
    pthread_setname_np(pthread_self(), "phantora_host");
    recorder::become_observer();
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return !queue_.empty(); });
      std::function<void()> work = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      work();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> queue_;
  bool started_ = false;
};

Worker& worker() {
  static Worker* instance = new Worker;  // never destroyed: its thread runs to the end of the process
  return *instance;
}

// Pending from the moment it is its turn until the worker has run it.
class HostFunction : public values::Exchange, public std::enable_shared_from_this<HostFunction> {
 public:
  explicit HostFunction(std::function<void()> function) : function_(std::move(function)) {}

  void start() override {
    worker().post([self = shared_from_this()] {
      self->function_();
      self->finished_ = true;
      values::exchange_arrived();
    });
  }
  bool ready() override { return finished_; }
  void apply() override {}

 private:
  std::function<void()> function_;
  std::atomic<bool> finished_{false};
};

}  // namespace

void launch_host_function(StreamId stream, std::function<void()> function) {
  Launch node;
  node.host_func = true;
  auto issue = [function, signature = signature_of(nullptr, node)](StreamId launched) {
    recorder::record(wire::RecordKind::kernel, launched, signature);
    values::submit(launched, std::make_shared<HostFunction>(function));
  };
  recorder::advance(config().launch_ns);
  if (!captures::add(stream, graphs::NodeType::host, issue)) issue(stream);
}

}  // namespace phantora
