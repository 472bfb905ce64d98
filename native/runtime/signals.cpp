#include "phantora/signals.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "phantora/blocks.h"
#include "phantora/kernels.h"
#include "phantora/values.h"
#include "signal_channel.h"

namespace phantora::signals {

namespace {

constexpr size_t most_members = 1024;
constexpr int none = -1;

// `collective`: barriers before and after what it moves.
enum class Parts : uint8_t { barrier, put, wait, collective, unknown };

// How much goes from each rank to each other, of n bytes with w ranks.
enum class Moves : uint8_t {
  nothing,
  whole,         // n
  parts_twice,   // n / w: the parts of a reduction, then its results
  through_once,  // the switch reduces: n into each rank, and out of it, in all
  through_twice  // and then multicasts each rank's n / w
};

}  // namespace

// Numbers are positions of arguments. The number of ranks follows the rank.
struct Protocol {
  std::string_view symbol;  // a part of it
  Parts parts;
  int pads = none;  // the array of all ranks' pads
  int rank = none;
  int channel = none;
  int peer = none;
  Moves moves = Moves::nothing;
  int count = none;    // of elements that a rank gives
  int output = none;   // where results go: the rank's own memory, or a multicast address
  int buffers = none;  // array of memory of all ranks, written too, …
  int offset = none;   // from this element on, …
  int only_if = none;  // if this argument is not null
};

namespace {

constexpr std::array<Protocol, 10> protocols = {{
    {.symbol = "14barrier_kernelE", .parts = Parts::barrier, .pads = 0, .rank = 2, .channel = 1},
    {.symbol = "17put_signal_kernelE", .parts = Parts::put, .pads = 0, .rank = 3, .channel = 2, .peer = 1},
    {.symbol = "18wait_signal_kernelE", .parts = Parts::wait, .pads = 0, .rank = 3, .channel = 2, .peer = 1},
    {.symbol = "26multimem_all_reduce_kernelI",
     .parts = Parts::collective,
     .pads = 2,
     .rank = 3,
     .moves = Moves::through_twice,
     .count = 1,
     .output = 0},
    {.symbol = "31multimem_one_shot_reduce_kernelI",
     .parts = Parts::collective,
     .pads = 3,
     .rank = 4,
     .moves = Moves::through_once,
     .count = 2,
     .output = 1},
    {.symbol = "35multimem_one_shot_all_reduce_kernelI",
     .parts = Parts::collective,
     .pads = 3,
     .rank = 4,
     .moves = Moves::through_once,
     .count = 2,
     .output = 1},
    {.symbol = "26multimem_all_gather_kernelI",
     .parts = Parts::collective,
     .pads = 3,
     .rank = 4,
     .moves = Moves::whole,
     .count = 2,
     .output = 1},
    {.symbol = "26one_shot_all_reduce_kernelI",
     .parts = Parts::collective,
     .pads = 5,
     .rank = 6,
     .moves = Moves::whole,
     .count = 4,
     .output = 1,
     .buffers = 0,
     .offset = 3,
     .only_if = 2},
    {.symbol = "26two_shot_all_reduce_kernelI",
     .parts = Parts::collective,
     .pads = 4,
     .rank = 5,
     .moves = Moves::parts_twice,
     .count = 3,
     .output = 1,
     .buffers = 0,
     .offset = 2},
    {.symbol = "34two_shot_all_reduce_kernel_inplaceI",
     .parts = Parts::collective,
     .pads = 3,
     .rank = 4,
     .moves = Moves::parts_twice,
     .count = 2,
     .buffers = 0,
     .offset = 1},
}};

constexpr Protocol unknown_protocol = {.symbol = "", .parts = Parts::unknown};

// One launch of a kernel.
class Use {
 public:
  Use(const kernels::Kernel& kernel, const kernels::Arguments& arguments)
      : kernel_(kernel), arguments_(arguments), protocol_(*kernel.signals) {}

  uint64_t members() const { return protocol_.rank == none ? 0 : number(protocol_.rank + 1); }

  ChannelPtr channel() const {
    if (members() == 0 || members() > most_members) return nullptr;
    return Channel::find(pointers(protocol_.pads), number(protocol_.rank), number(protocol_.channel));
  }

  // What it tells and waits to be told when it is done.
  Stores signals(const Channel& channel) const {
    const Store peer = {static_cast<uint32_t>(number(protocol_.peer)), 0};
    if (protocol_.parts == Parts::put) return {.given = {peer}, .awaited = {}};
    if (protocol_.parts == Parts::wait) return {.given = {}, .awaited = {peer}};
    return channel.with_everyone(0, true);
  }

  // What a collective moves: from each to each, once both are there.
  Stores exchange(const Channel& channel) const { return channel.with_everyone(moved_bytes(), false); }

  // Nobody computes what it writes, for its own rank or for others.
  void forget_results(StreamId stream) const {
    bool gathers = protocol_.moves == Moves::whole && protocol_.buffers == none;
    if (protocol_.output != none) forget(pointer(protocol_.output), bytes() * (gathers ? members() : 1), stream);
    bool writes_buffers = protocol_.only_if == none || number(protocol_.only_if) != 0;
    if (protocol_.buffers == none || !writes_buffers || scatters()) return;
    size_t offset = number(protocol_.offset) * element_bytes();
    for (const char* memory : pointers(protocol_.buffers)) forget(memory + offset, bytes(), stream);
  }

 private:
  // 0 if there is none.
  uint64_t number(int position) const {
    uint64_t value = 0;
    if (position == none || static_cast<size_t>(position) >= kernel_.code.parameters.size()) return value;
    const code::Parameter& parameter = kernel_.code.parameters[position];
    const char* data = arguments_.find(position, parameter);
    if (data) std::memcpy(&value, data, std::min<size_t>(parameter.bytes, sizeof value));
    return value;
  }

  const char* pointer(int position) const { return reinterpret_cast<const char*>(number(position)); }

  // Of all members, from an array in device memory; none if nobody knows what is there.
  std::vector<const char*> pointers(int position) const {
    std::vector<const char*> found(members());
    size_t array_bytes = found.size() * sizeof(void*);
    const char* array = pointer(position);
    values::Lock lock;
    if (blocks::reach(array) < array_bytes || values::state(array, array_bytes) != values::State::known) return {};
    std::memcpy(found.data(), array, array_bytes);
    return found;
  }

  uint64_t element_bytes() const {
    if (kernel_.name.find("all_gather") != std::string::npos) return 1;
    return kernel_.name.find("BFloat16") == std::string::npos ? sizeof(float) : 2;
  }

  uint64_t bytes() const { return number(protocol_.count) * element_bytes(); }

  // The two-shot kernel's fourth template argument: each rank keeps its part of the result.
  bool scatters() const { return kernel_.name.find("ELb1ELb") != std::string::npos; }

  uint64_t moved_bytes() const {
    uint64_t n = bytes(), w = members();
    if (w < 2) return 0;
    switch (protocol_.moves) {
      case Moves::whole:
        return n;
      case Moves::parts_twice:
        return (scatters() ? n : 2 * n) / w;
      case Moves::through_once:
        return n / (w - 1);
      case Moves::through_twice:
        return (n + n / w) / (w - 1);
      default:
        return 0;
    }
  }

  static void forget(const char* begin, size_t bytes, StreamId stream) {
    bytes = std::min(bytes, blocks::reach(begin));
    values::submit(stream, [begin, bytes] { values::mark_unknown(begin, bytes); });
  }

  const kernels::Kernel& kernel_;
  const kernels::Arguments& arguments_;
  const Protocol& protocol_;
};

}  // namespace

const Protocol* protocol_of(std::string_view kernel) {
  auto holds = [kernel](std::string_view part) { return kernel.find(part) != std::string_view::npos; };
  if (holds("AsyncInputScheduler")) return &unknown_protocol;  // a product whose input comes while it runs
  if (!holds("16symmetric_memory") && !holds("CUDASymmetricMemory")) return nullptr;
  for (const Protocol& protocol : protocols) {
    if (holds(protocol.symbol)) return &protocol;
  }
  return &unknown_protocol;
}

bool is_known(const Protocol& protocol) { return protocol.parts != Parts::unknown; }

void issue(const kernels::Kernel& kernel, const kernels::Arguments& arguments, StreamId stream) {
  const Use use(kernel, arguments);
  ChannelPtr channel = use.channel();
  if (channel && kernel.signals->parts == Parts::collective) Channel::issue(channel, use.exchange(*channel), stream);
  use.forget_results(stream);
  if (channel) return Channel::issue(channel, use.signals(*channel), stream);
  recorder::declare_guess("kernel " + kernel.name +
                          ", which may wait for what other streams or ranks store: it waits for none");
}

}  // namespace phantora::signals
