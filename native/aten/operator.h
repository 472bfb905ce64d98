// What the hook knows of an operator, found out once when it is overridden.
#pragma once
#include <ATen/core/dispatch/Dispatcher.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "operator_policy.h"

namespace phantora::aten {

struct ArgumentInfo {
  bool write = false;  // the operator changes it
  bool out = false;    // … without reading it (out=)
  bool scaled_by_beta = false;
  bool begun = false;      // it has a value once the optimizer has taken a step
  bool statistic = false;  // running statistics that its schema does not mention: written while training
  bool generator = false;
  bool magnitude = false;  // a number whose value does not matter to a kernel's cost
};

// Where a return value comes from: memory that the operator allocated, or an argument.
struct ReturnInfo {
  int argument = -1;  // -1: fresh
};

// What happened to its values, for the farewell.
struct Tally {
  std::atomic<uint64_t> computed{0};
  std::atomic<uint64_t> skipped{0};        // too large
  std::atomic<uint64_t> impossible{0};     // small, but the CPU cannot compute it
  std::atomic<uint64_t> largest_bytes{0};  // of those skipped
};

std::string full_name(const c10::OperatorHandle& handle);  // "aten::add.Tensor"

struct Operator {
  explicit Operator(const c10::OperatorHandle& handle);

  bool computable() const { return policy != Policy::transparent && (replacement || cpu_kernel.isValid()); }

  c10::OperatorHandle handle;
  std::string name;  // full_name()
  uint64_t hash;
  c10::KernelFunction cuda_kernel;
  c10::KernelFunction cpu_kernel;  // not valid if there is none
  Replacement replacement;         // used instead of cpu_kernel
  Policy policy;
  Benign benign;
  bool seeded;           // draws random numbers
  bool owner;            // of all that is launched within it
  bool moves;            // elements of its arguments, and does nothing to them
  bool mutates = false;  // some argument is written
  bool fills = false;    // … and all that are written are an out=
  int beta = -1;         // the argument that "self" is multiplied with: of zero, self is not read
  int first_step = -1;   // the argument that says that the optimizer has taken none yet
  int training = -1;     // the argument that says whether statistics are written
  std::vector<ArgumentInfo> arguments;
  std::vector<ReturnInfo> returns;
  mutable Tally tally;
  mutable std::unordered_set<uint64_t> impossible_calls;  // by Capture::hash; under the lock of values
};

}  // namespace phantora::aten
