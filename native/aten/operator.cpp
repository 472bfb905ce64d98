#include "operator.h"

#include <ATen/core/enum_tag.h>

#include <functional>

namespace phantora::aten {
namespace {

// A Scalar or float, alone, optional, or in a list.
bool is_magnitude(const c10::TypePtr& type) {
  if (type->kind() == c10::TypeKind::NumberType || type->kind() == c10::TypeKind::FloatType) return true;
  if (auto optional = type->cast<c10::OptionalType>()) return is_magnitude(optional->getElementType());
  if (auto list = type->cast<c10::ListType>()) return is_magnitude(list->getElementType());
  return false;
}

bool is_generator(const c10::TypePtr& type) {
  if (auto optional = type->cast<c10::OptionalType>()) return is_generator(optional->getElementType());
  return type->kind() == c10::TypeKind::GeneratorType;
}

bool writes(const c10::Argument& argument) { return argument.alias_info() && argument.alias_info()->isWrite(); }

// The argument that a return is, by the name of their alias set; -1 for fresh memory.
int argument_of(const c10::Argument& result, const std::vector<c10::Argument>& arguments) {
  if (!result.alias_info()) return -1;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].alias_info() && arguments[i].alias_info()->beforeSets() == result.alias_info()->beforeSets()) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

c10::KernelFunction computed_kernel(const c10::OperatorHandle& handle, c10::DispatchKey key) {
  if (!handle.hasComputedKernelForDispatchKey(key)) return {};
  return handle.getComputedKernelForDispatchKey(key).kernelFunction();
}

}  // namespace

std::string full_name(const c10::OperatorHandle& handle) {
  const c10::OperatorName& name = handle.operator_name();
  return name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
}

Operator::Operator(const c10::OperatorHandle& h)
    : handle(h),
      name(full_name(h)),
      hash(std::hash<std::string>()(name)),
      cuda_kernel(computed_kernel(h, c10::DispatchKey::CUDA)),
      cpu_kernel(computed_kernel(h, c10::DispatchKey::CPU)),
      replacement(replacement_of(name)),
      policy(policy_of(name)),
      benign(benign_of(name)),
      seeded(h.hasTag(at::Tag::nondeterministic_seeded)),
      owner(owns_what_it_calls(name)),
      moves(moves_elements(name)) {
  bool statistics = writes_running_statistics(name);
  const auto& schema_arguments = h.schema().arguments();
  for (const c10::Argument& argument : schema_arguments) {
    ArgumentInfo info;
    info.write = writes(argument);
    info.statistic = statistics && argument.name().starts_with("running_");
    info.out = writes(argument) && (argument.kwarg_only() || overwrites(name));
    info.generator = is_generator(argument.real_type());
    info.magnitude = is_magnitude(argument.real_type());
    info.scaled_by_beta = argument.name() == "self";
    info.begun = argument.name() == "momentum_buffer_list";
    if (argument.name() == "is_first_step") first_step = static_cast<int>(arguments.size());
    if (argument.name() == "beta" && info.magnitude) beta = static_cast<int>(arguments.size());
    if (writes(argument)) fills = (fills || !mutates) && argument.kwarg_only();
    mutates = mutates || writes(argument);
    if (statistics && argument.name() == "training") training = static_cast<int>(arguments.size());
    arguments.push_back(info);
  }
  for (const c10::Argument& result : h.schema().returns()) returns.push_back({argument_of(result, schema_arguments)});
}

}  // namespace phantora::aten
