#include "phantora/condition.h"

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <string_view>

#include "phantora/kernels.h"
#include "phantora/values.h"

namespace phantora::conditions {

namespace {

// Handles are unlike any address or small number, so that one among a kernel's arguments is no accident.
constexpr Handle first_handle = 0x636f'6e64'0000'0001;  // "cond"

// How PyTorch's torch.cond and while_loop set one: set_conditional_handle_kernel(handle, const bool* value).
constexpr std::string_view pytorch_setter = "29set_conditional_handle_kernelEyPKb";
constexpr code::Parameter pytorch_handle = {0, sizeof(Handle)}, pytorch_value = {sizeof(Handle), sizeof(void*)};

class Table {
 public:
  Handle next_handle() { return first_handle + made_.fetch_add(1, std::memory_order_relaxed); }
  bool empty() const { return made_.load(std::memory_order_relaxed) == 0; }

  void add(const std::shared_ptr<Condition>& condition) {
    std::lock_guard lock(mutex_);
    conditions_[condition->handle()] = condition;
  }

  void remove(Handle handle) {
    std::lock_guard lock(mutex_);
    conditions_.erase(handle);
  }

  std::shared_ptr<Condition> find(Handle handle) {
    std::lock_guard lock(mutex_);
    auto found = conditions_.find(handle);
    return found == conditions_.end() ? nullptr : found->second.lock();
  }

 private:
  std::mutex mutex_;
  std::atomic<uint64_t> made_{0};
  std::map<Handle, std::weak_ptr<Condition>> conditions_;
};

Table& table() {
  static Table* conditions = new Table;  // never destroyed: used by exit handlers
  return *conditions;
}

uint64_t word_at(const char* data) {
  uint64_t word = 0;
  if (data) std::memcpy(&word, data, sizeof word);
  return word;
}

void note_unknown_setter(const kernels::Kernel& kernel, const kernels::Arguments& arguments, StreamId stream) {
  for (size_t i = 0; i < kernel.code.parameters.size(); ++i) {
    const code::Parameter& parameter = kernel.code.parameters[i];
    const char* data = arguments.find(i, parameter);
    for (uint32_t at = 0; data && at + sizeof(Handle) <= parameter.bytes; at += sizeof(Handle)) {
      std::shared_ptr<Condition> condition = find(word_at(data + at));
      if (!condition) continue;
      values::submit(stream, [condition, name = kernel.name] { condition->set_by_unknown(name); });
    }
  }
}

}  // namespace

Condition::Condition(std::optional<unsigned> at_launch)
    : handle_(table().next_handle()), at_launch_(at_launch), value_(at_launch) {}

Condition::~Condition() { table().remove(handle_); }

void Condition::begin_launch() {
  value_ = at_launch_;
  unknown_setter_.clear();
}

void Condition::set(unsigned value) {
  value_ = value;
  unknown_setter_.clear();
}

void Condition::set_by_unknown(const std::string& kernel) { unknown_setter_ = kernel; }

unsigned Condition::await(StreamId stream) const {
  if (!values::idle(stream)) {
    recorder::go_outside("the value that a conditional node of a CUDA graph asks for");
    values::drain_stream(stream);
    recorder::go_outside("");
  }
  values::Lock lock;
  constexpr const char* hint =
      "of kernels that set conditions, the one of PyTorch's torch.cond and while_loop is known; leave others out of "
      "graphs, or let cudaGraphCondAssignDefault say what the condition is";
  if (!unknown_setter_.empty()) {
    fail("the condition of a conditional node in a CUDA graph is set by " + unknown_setter_ +
             ", a kernel whose results nothing computes",
         hint);
  }
  if (!value_) fail("a launched CUDA graph has a conditional node whose condition nothing has set", hint);
  return *value_;
}

std::shared_ptr<Condition> create(std::optional<unsigned> at_launch) {
  auto condition = std::make_shared<Condition>(at_launch);
  table().add(condition);
  return condition;
}

std::shared_ptr<Condition> find(Handle handle) { return table().find(handle); }
bool any() { return !table().empty(); }

bool note_launch(const kernels::Kernel& kernel, const kernels::Arguments& arguments, StreamId stream) {
  if (!any()) return false;
  std::string_view name = kernel.name;
  if (!name.ends_with(pytorch_setter)) {
    note_unknown_setter(kernel, arguments, stream);
    return false;
  }
  std::shared_ptr<Condition> condition = find(word_at(arguments.find(0, pytorch_handle)));
  if (!condition) return false;
  auto value = reinterpret_cast<const void*>(word_at(arguments.find(1, pytorch_value)));
  values::read(stream, value, sizeof(bool), "condition of a CUDA graph",
               [condition](std::string_view bytes) { condition->set(bytes[0] != 0); });
  return true;
}

}  // namespace phantora::conditions
