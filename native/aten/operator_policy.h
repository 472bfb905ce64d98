// What is particular about single operators, by name. Everything that is not named here follows its schema.
#pragma once
#include <ATen/core/Generator.h>
#include <ATen/core/stack.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace phantora::aten {

// Where the values of an operator come from.
enum class Policy : uint8_t {
  compute,      // the CPU, if its tensors are small; else what it writes becomes unknown
  whole,        // the same for all that its kernel calls within, of which the CPU knows nothing
  copy,         // as compute, but up to the limit of copies: copy_, of which memcpy does a part
  allocate,     // nowhere: it returns fresh memory
  transparent,  // what it launches itself: it reads back, or moves storage
  readback,     // the CPU, before the sizes of its outputs are known (readback.h)
};

// What a script sees of an operator whose inputs are not known, where zeros would lead it astray.
enum class Benign : uint8_t {
  zeros,
  all_true,     // all(): the check passes
  all_false,    // any(): nothing is found
  balanced,     // topk: indices go round the candidates, so that experts are loaded evenly
  permutation,  // sort: indices are 0, 1, 2, …
};

// Computes on CPU tensors what has no fitting CPU kernel: arguments on the stack are replaced by returns. An output
// left undefined is one that nobody looks into (a workspace). `generator` is for operators that draw from the default
// one.
using Replacement = void (*)(torch::jit::Stack& stack, std::optional<at::Generator> generator);

Policy policy_of(std::string_view name);
Benign benign_of(std::string_view name);
Replacement replacement_of(std::string_view name);
bool writes_running_statistics(std::string_view name);   // without saying so in its schema
bool moves_elements(std::string_view name);              // of its arguments, whatever they are, into its result
bool overwrites(std::string_view name);                  // what it writes, without reading it, though not an out=
bool launches_for_every_backend(std::string_view name);  // it has one kernel for all, which launches by itself
bool owns_what_it_calls(std::string_view name);          // it is known by its own name, whatever it is made of
bool is_ours_to_override(std::string_view name_space);

}  // namespace phantora::aten
