#include "gloo.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <memory>
#include <string>
#include <vector>

#include "phantora/host_groups.h"
#include "phantora/recorder.h"
#include "undisturbed.h"

namespace phantora::aten {
namespace {

struct Collective {
  const char* op;
  const char* what;
};

constexpr Collective collectives[] = {
    {"c10d::barrier", "barrier"},
    {"c10d::monitored_barrier_", "barrier"},
    {"c10d::allreduce_", "all_reduce"},
    {"c10d::allreduce_coalesced_", "all_reduce"},
    {"c10d::allgather_", "all_gather"},
    {"c10d::_allgather_base_", "all_gather"},
    {"c10d::allgather_coalesced_", "all_gather"},
    {"c10d::allgather_into_tensor_coalesced_", "all_gather"},
    {"c10d::reduce_scatter_", "reduce_scatter"},
    {"c10d::_reduce_scatter_base_", "reduce_scatter"},
    {"c10d::reduce_scatter_tensor_coalesced_", "reduce_scatter"},
    {"c10d::alltoall_", "all_to_all"},
    {"c10d::alltoall_base_", "all_to_all"},
    {"c10d::broadcast_", "broadcast"},
    {"c10d::reduce_", "reduce"},
    {"c10d::gather_", "gather"},
    {"c10d::gather_into_tensor_", "gather"},
    {"c10d::scatter_", "scatter"},
};

// By member; none for a backend without options.
std::vector<uint64_t> global_ranks(const c10d::ProcessGroup& group) {
  try {
    auto backend = const_cast<c10d::ProcessGroup&>(group).getBackend(c10::DeviceType::CPU);
    return backend->getBackendOptions()->global_ranks_in_group;
  } catch (const c10::Error&) {
    return {};
  }
}

// Names repeat for groups of different ranks.
host_groups::Group host_group(const c10d::ProcessGroup& group, const std::string& what) {
  std::vector<uint64_t> ranks = global_ranks(group);
  std::string uid = "gloo:" + what + ":" + group.getGroupName();
  for (uint64_t rank : ranks) uid += "," + std::to_string(rank);
  return {uid, "gloo:" + what, group.getSize(), group.getRank(), std::move(ranks)};
}

// Stands before the CPU kernel of a collective.
class Synchronised : public c10::OperatorKernel {
 public:
  Synchronised(const c10::OperatorHandle& handle, std::string what)
      : kernel_(handle.getComputedKernelForDispatchKey(c10::DispatchKey::CPU).kernelFunction()),
        what_(std::move(what)) {
    const auto& arguments = handle.schema().arguments();
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i].name() == "process_group") group_at_ = i;
      if (arguments[i].name() == "async_op") asynchronous_at_ = static_cast<int>(i);
    }
  }

  void operator()(const c10::OperatorHandle& handle, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
    const c10::IValue* first = stack->data() + stack->size() - handle.schema().arguments().size();
    bool asynchronous = asynchronous_at_ >= 0 && first[asynchronous_at_].toBool();
    auto group = first[group_at_].toCustomClass<c10d::ProcessGroup>();
    kernel_.callBoxed(handle, keys, stack);
    if (!recorder::active() || asynchronous || group->getSize() < 2) return;
    recorder::host_sync(host_groups::find_or_define(host_group(*group, what_)));
  }

 private:
  c10::KernelFunction kernel_;
  std::string what_;
  size_t group_at_ = 0;
  int asynchronous_at_ = -1;
};

}  // namespace

void synchronise_gloo() {
  auto& dispatcher = c10::Dispatcher::singleton();
  static auto* registrations = new std::vector<c10::RegistrationHandleRAII>;  // never undone
  Undisturbed quiet;  // the dispatcher warns when a kernel is replaced
  for (const Collective& collective : collectives) {
    auto handle = dispatcher.findSchema({collective.op, ""});
    if (!handle || !handle->hasKernelForDispatchKey(c10::DispatchKey::CPU)) continue;
    auto kernel = c10::KernelFunction::makeFromBoxedFunctor(std::make_unique<Synchronised>(*handle, collective.what));
    registrations->push_back(dispatcher.registerImpl(handle->operator_name(), c10::DispatchKey::CPU, std::move(kernel),
                                                     std::nullopt, nullptr, "phantora"));
  }
}

}  // namespace phantora::aten
