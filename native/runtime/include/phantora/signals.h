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

// Whether issue() says all that such a kernel writes for others to see.
bool is_known(const Protocol& protocol);

// Such a kernel has been issued. What it moves between ranks follows on the stream; then what it writes becomes
// unknown, then come its signals. In a graph that is being captured they are part of the kernel's node.
void issue(const kernels::Kernel& kernel, const kernels::Arguments& arguments, StreamId stream);

}  // namespace signals PHANTORA_EXPORT
}  // namespace phantora
