// Conditions of CUDA graphs (cudaGraphConditionalHandle): numbers that kernels of a graph set on the device, and that
// decide which bodies of its conditional nodes run, and how often.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "phantora/export.h"
#include "phantora/recorder.h"

namespace phantora {
namespace kernels PHANTORA_EXPORT {
struct Arguments;
struct Kernel;
}  // namespace kernels PHANTORA_EXPORT

namespace conditions PHANTORA_EXPORT {

using Handle = uint64_t;

// What is done to it has its turn in the order of a stream, as values have (values.h).
class Condition {
 public:
  // `at_launch`: what it is when a launch of its graph begins; without, something has to set it before it is read.
  explicit Condition(std::optional<unsigned> at_launch);
  ~Condition();
  Condition(const Condition&) = delete;
  Condition& operator=(const Condition&) = delete;

  Handle handle() const { return handle_; }

  void begin_launch();
  void set(unsigned value);
  void set_by_unknown(const std::string& kernel);  // which is not run: nobody knows to what

  // Waits until the stream's turn has come to what reads it, in real time alone: no clock moves. Ends the process where
  // nobody knows the value.
  unsigned await(StreamId stream) const;

 private:
  const Handle handle_;
  const std::optional<unsigned> at_launch_;
  std::optional<unsigned> value_;
  std::string unknown_setter_;  // empty: whoever has set it is known
};

std::shared_ptr<Condition> create(std::optional<unsigned> at_launch);
std::shared_ptr<Condition> find(Handle handle);  // null: there is none, or no longer
bool any();                                      // has one been made?

// A kernel has been issued. The conditions that it is handed, it may set. True if it is one that does this and nothing
// else, and does it here, too.
bool note_launch(const kernels::Kernel& kernel, const kernels::Arguments& arguments, StreamId stream);

}  // namespace conditions PHANTORA_EXPORT
}  // namespace phantora
