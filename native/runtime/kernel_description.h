// What the compiler of a generated kernel told of it (Triton, Inductor): which arguments are tensors, how it uses them,
// and facts that a cost follows from.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "phantora/kernels.h"
#include "phantora/wire.h"

namespace phantora::kernels {

// As text, a line each, fields parted by tabs:
//   argument  NAME  READS  WRITES  DTYPE      in the order of the kernel's parameters; DTYPE is empty for a scalar.
//                                             How often each element is read and written at most (0: never)
//   number    KEY   INTEGER                   a fact
//   text      KEY   TEXT
//   scalar    KEY   NAME                      a fact: the value of that argument at each launch
class Description {
 public:
  static std::optional<Description> parse(std::string_view text);

  struct Argument {
    std::string name;
    int64_t reads = 0, writes = 0;
    std::string dtype;
    uint32_t element_bytes = 0;  // 0: a scalar

    bool is_tensor() const { return element_bytes != 0; }
  };
  const std::vector<Argument>& arguments() const { return arguments_; }

  // Of a launch: the pairs "tensors" and "code" of a signature (docs/protocol.md).
  static constexpr uint32_t pairs = 2;
  std::string pack(const code::KernelCode& code, const kernels::Arguments& arguments) const;

 private:
  struct ScalarOf {
    size_t argument;
  };
  struct Fact {
    std::string key;
    std::variant<int64_t, std::string, ScalarOf> value;
  };

  bool add(const std::vector<std::string_view>& fields);

  std::vector<Argument> arguments_;
  std::vector<Fact> facts_;
};

}  // namespace phantora::kernels
