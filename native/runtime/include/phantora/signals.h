// Kernels by which devices tell one another how far they are, in memory that they share: those of PyTorch's symmetric
// memory (torch/csrc/distributed/c10d/symm_mem). Each rank has a pad, a word for each channel and rank; a signal is a
// store into another rank's, and who waits for it looks at its own.
#pragma once
#include <string_view>

#include "phantora/export.h"
#include "phantora/recorder.h"

namespace phantora {
namespace kernels PHANTORA_EXPORT {
struct Arguments;
struct Kernel;
}  // namespace kernels PHANTORA_EXPORT

namespace signals PHANTORA_EXPORT {

struct Protocol;  // what a kernel signals, and which of its arguments say to whom

// By the kernel's symbol. Null: it does not signal.
const Protocol* protocol_of(std::string_view kernel);

// Whether Scope says all that such a kernel writes for others to see.
bool is_known(const Protocol& protocol);

// Lives while such a kernel is issued: what it moves between ranks comes before it on the stream, then what it writes
// becomes unknown, then come its signals.
class Scope {
 public:
  Scope(const kernels::Kernel& kernel, const kernels::Arguments& arguments, StreamId stream);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  const kernels::Kernel& kernel_;
  const kernels::Arguments& arguments_;
  StreamId stream_;
};

}  // namespace signals PHANTORA_EXPORT
}  // namespace phantora
