#include "overrides.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

#include "override.h"
#include "undisturbed.h"

namespace phantora::aten {
namespace {

// Views launch nothing: they cost nothing and keep their values.
bool is_view(const c10::FunctionSchema& schema) {
  auto aliases = [](const c10::Argument& a) { return a.alias_info() != nullptr; };
  auto written = [](const c10::Argument& a) { return a.alias_info() && a.alias_info()->isWrite(); };
  return std::any_of(schema.returns().begin(), schema.returns().end(), aliases) &&
         std::none_of(schema.arguments().begin(), schema.arguments().end(), written);
}

bool is_wanted(const c10::OperatorHandle& handle) {
  constexpr auto cuda = c10::DispatchKey::CUDA;
  if (!handle.hasSchema()) return false;
  const std::string& name = handle.operator_name().name;
  if (!is_ours_to_override(std::string_view(name).substr(0, name.find("::")))) return false;
  if (launches_for_every_backend(full_name(handle)) || owns_what_it_calls(full_name(handle))) return true;
  if (!handle.hasKernelForDispatchKey(cuda) || handle.isKernelFallthroughKernel(cuda)) return false;
  return !is_view(handle.schema());
}

// Never undone: libraries are not unloaded, and static destructors come in no particular order.
class Overrides {
 public:
  static Overrides& instance() {
    static Overrides* overrides = new Overrides;
    return *overrides;
  }

  void note(const c10::OperatorHandle& handle) {
    std::lock_guard guard(mutex_);
    fresh_.push_back(handle);
    any_fresh_.store(true, std::memory_order_relaxed);
  }

  void forget(const c10::OperatorHandle& handle) {
    std::lock_guard guard(mutex_);
    std::erase_if(fresh_, [&handle](const c10::OperatorHandle& other) { return other == handle; });
  }

  bool any_fresh() const { return any_fresh_.load(std::memory_order_relaxed); }

  void add_fresh() {
    std::vector<c10::OperatorHandle> fresh;
    {
      std::lock_guard guard(mutex_);
      fresh.swap(fresh_);
      any_fresh_.store(false, std::memory_order_relaxed);
    }
    for (const c10::OperatorHandle& handle : fresh) {
      if (is_wanted(handle)) add(handle);
    }
  }

  void for_each(const std::function<void(const Operator&)>& visit) {
    std::lock_guard guard(mutex_);
    for (const Operator* op : operators_) visit(*op);
  }

 private:
  void add(const c10::OperatorHandle& handle) {
    auto functor = std::make_unique<Override>(handle);
    const Operator* op = &functor->op();
    Undisturbed quiet;  // the dispatcher warns when a kernel is replaced
    auto registration = c10::Dispatcher::singleton().registerImpl(
        handle.operator_name(), c10::DispatchKey::CUDA, c10::KernelFunction::makeFromBoxedFunctor(std::move(functor)),
        std::nullopt, nullptr, "phantora");
    std::lock_guard guard(mutex_);
    operators_.push_back(op);
    registrations_.push_back(std::move(registration));
  }

  std::mutex mutex_;
  std::vector<c10::OperatorHandle> fresh_;
  std::atomic<bool> any_fresh_{false};
  std::vector<const Operator*> operators_;
  std::vector<c10::RegistrationHandleRAII> registrations_;
};

class Listener : public c10::OpRegistrationListener {
  void onOperatorRegistered(const c10::OperatorHandle& handle) override { Overrides::instance().note(handle); }
  void onOperatorDeregistered(const c10::OperatorHandle& handle) override { Overrides::instance().forget(handle); }
};

}  // namespace

void override_operators() {
  // The listener hears of every operator that there is at once. It is never removed.
  new c10::RegistrationHandleRAII(c10::Dispatcher::singleton().addRegistrationListener(std::make_unique<Listener>()));
  Overrides::instance().add_fresh();
}

void override_new_operators() {
  if (Overrides::instance().any_fresh()) Overrides::instance().add_fresh();
}

void for_each_operator(const std::function<void(const Operator&)>& visit) { Overrides::instance().for_each(visit); }

}  // namespace phantora::aten
