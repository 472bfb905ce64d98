#include "phantora/kernels.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <shared_mutex>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "kernel_description.h"
#include "phantora/blocks.h"
#include "phantora/condition.h"
#include "phantora/config.h"
#include "phantora/device.h"
#include "phantora/launch.h"
#include "phantora/memory.h"
#include "phantora/signals.h"
#include "phantora/values.h"
#include "phantora/virtual_memory.h"

namespace phantora::kernels {

namespace {

constexpr int max_block_threads = 1024;
constexpr int registers_per_sm = 65536;
constexpr int register_unit = 8;  // of a thread, in which registers are given out
constexpr int warp = 32;
constexpr uint32_t portable_cluster_blocks = 8, largest_cluster_blocks = 16;
constexpr size_t reserved_shared_bytes = 1 << 10;  // of each block, taken by the system

uint64_t product(const uint32_t (&sizes)[3]) { return uint64_t{sizes[0]} * sizes[1] * sizes[2]; }

int registers_of(const Kernel& kernel) {
  return (kernel.code.registers + register_unit - 1) / register_unit * register_unit;
}

bool is_possible(const Kernel& kernel, const Shape& shape) {
  constexpr uint32_t grid_limits[3] = {2147483647, 65535, 65535};
  constexpr uint32_t block_limits[3] = {1024, 1024, 64};
  for (int i = 0; i < 3; ++i) {
    if (shape.grid[i] == 0 || shape.grid[i] > grid_limits[i]) return false;
    if (shape.block[i] == 0 || shape.block[i] > block_limits[i]) return false;
  }
  return product(shape.block) <= max_block_threads &&
         shape.shared_bytes <= static_cast<size_t>(kernel.dynamic_shared_limit);
}

Resources resources_of(const Kernel& kernel, const Shape& shape) {
  Resources resources{.dynamic_shared_bytes = static_cast<int>(shape.shared_bytes)};
  if (!kernel.is_read) return resources;
  resources.registers = kernel.code.registers;
  resources.static_shared_bytes = kernel.code.shared_bytes;
  return resources;
}

// Registers, and the bounds that the kernel was compiled for.
bool fits(const Kernel& kernel, const Shape& shape) {
  auto threads = static_cast<int>(product(shape.block));
  return threads <= kernel.code.max_threads &&
         (threads + warp - 1) / warp * warp * registers_of(kernel) <= registers_per_sm;
}

bool is_possible_cluster(const Kernel& kernel, const Shape& shape) {
  const uint32_t (&cluster)[3] = shape.cluster[0] ? shape.cluster : kernel.code.cluster;
  if (cluster[0] == 0) return true;
  for (int i = 0; i < 3; ++i) {
    if (cluster[i] == 0 || shape.grid[i] % cluster[i] != 0) return false;
  }
  return product(cluster) <= (kernel.non_portable_cluster ? largest_cluster_blocks : portable_cluster_blocks);
}

bool is_resident(const Kernel& kernel, const Shape& shape) {
  int blocks = active_blocks_per_sm(kernel, static_cast<int>(product(shape.block)), shape.shared_bytes);
  return product(shape.grid) <= static_cast<uint64_t>(blocks) * config().sm_count;
}

// PyTorch's own operators have costs and values of theirs, whatever kernels they are made of.
// What the kernel does to values is known: the open op, one of the script's own, has done no more by it.
void note_carried() {
  if (OpScope* op = current_op()) ++op->carried;
}

bool belongs_to(const OpScope* op) { return op && std::string_view(op->name).starts_with("aten::"); }

const void* word_at(const char* data) {
  const void* word;
  std::memcpy(&word, data, sizeof word);
  return word;
}

// Pointers that a kernel finds in device memory.
constexpr size_t most_pointers = 1024;

template <typename Visit>
void each_pointer(const void* array, size_t bytes, Visit visit) {
  for (size_t i = 0; i < std::min(bytes / sizeof(void*), most_pointers); ++i) {
    const char* at = static_cast<const char*>(array) + i * sizeof(void*);
    if (values::state(at, sizeof(void*)) != values::State::known) return;
    visit(word_at(at));
  }
}

// An array of pointers to memory of several ranks (symmetric memory): kernels read it.
bool holds_other_ranks(const void* array, size_t bytes) {
  bool found = false;
  if (!virtual_memory::any_foreign()) return found;
  each_pointer(array, bytes, [&found](const void* pointer) { found = found || virtual_memory::is_foreign(pointer); });
  return found;
}

bool reaches_other_ranks(const void* pointer, size_t bytes) {
  values::Lock lock;
  return virtual_memory::is_foreign(pointer) || holds_other_ranks(pointer, bytes);
}

// Who may store in memory of other ranks may also wait there until these have stored in its own: of all that such an
// array points to, nothing is known any more.
void forget(const void* pointer, size_t bytes) {
  if (!holds_other_ranks(pointer, bytes)) return values::mark_unknown(pointer, bytes);
  each_pointer(pointer, bytes, [](const void* shared) {
    if (auto mapping = virtual_memory::mapping(shared)) values::mark_unknown(mapping->base, mapping->bytes);
  });
}

void note_foreign(const Kernel& kernel) {
  recorder::declare_guess("kernel " + kernel.name +
                          ", which is handed memory of other ranks: timed as if it were its own device's, and as if "
                          "nobody waited for anybody in it");
}

// Nothing computes what the kernel writes: all that its pointers reach becomes unknown in stream order, but for what
// its compiler says is only read. Structs passed by value are searched for pointers.
void overwrite(const Kernel& kernel, const Arguments& arguments, StreamId stream) {
  const Description* description = kernel.description.get();
  for (size_t i = 0; i < kernel.code.parameters.size(); ++i) {
    // A number may be an address.
    bool told = description && i < description->arguments().size() && description->arguments()[i].is_tensor();
    if (told && description->arguments()[i].writes == 0) continue;
    const code::Parameter& parameter = kernel.code.parameters[i];
    const char* data = arguments.find(i, parameter);
    if (!data) continue;
    for (uint32_t at = 0; at + sizeof(void*) <= parameter.bytes; at += sizeof(void*)) {
      const void* pointer = word_at(data + at);
      if (size_t bytes = blocks::reach(pointer)) {
        if (reaches_other_ranks(pointer, bytes)) note_foreign(kernel);
        values::submit(stream, [pointer, bytes] { forget(pointer, bytes); });
      }
    }
  }
}

void forget_results(const Kernel& kernel, const Arguments& arguments, StreamId stream) {
  if (kernel.is_read) return overwrite(kernel, arguments, stream);
  recorder::declare_guess("kernel " + kernel.name + ", whose code cannot be read: its results are not marked unknown");
}

// An image is read once, however many of its kernels are launched.
const code::Image& read_once(const void* image) {
  static std::mutex mutex;
  static auto* images = new std::unordered_map<const void*, code::Image>;
  std::lock_guard lock(mutex);
  auto found = images->find(image);
  if (found == images->end()) found = images->emplace(image, code::Image::read(image)).first;
  return found->second;
}

void read_code(Kernel& kernel) {
  const code::KernelCode* code = read_once(std::exchange(kernel.image, nullptr)).find_kernel(kernel.name);
  if (!code) return;
  kernel.code = *code;
  kernel.is_read = true;
}

struct Registry {
  std::shared_mutex mutex;
  std::unordered_map<const void*, std::unique_ptr<Kernel>> kernels;  // by their own address
};

Registry& registry() {
  static Registry* table = new Registry;  // never destroyed: used by exit handlers
  return *table;
}

std::shared_ptr<const Description> described(std::string_view text) {
  return std::make_shared<const Description>(*Description::parse(text));
}

// What is known of a kernel by its symbol: torch.cuda._sleep's does nothing for a number of cycles, and one that
// signals moves nothing but what it says itself.
std::shared_ptr<const Description> known_description(const Kernel& kernel) {
  static const auto* sleep = new auto(described("argument\tcycles\t0\t0\t\nscalar\tcycles\tcycles"));
  static const auto* nothing = new auto(described("number\txnumel\t0"));
  if (kernel.name.ends_with("11spin_kernelEl")) return *sleep;
  return kernel.signals && signals::is_known(*kernel.signals) ? *nothing : nullptr;
}

Kernel* add(std::unique_ptr<Kernel> kernel) {
  Kernel* handle = kernel.get();
  handle->signals = signals::protocol_of(handle->name);
  handle->description = known_description(*handle);
  std::unique_lock lock(registry().mutex);
  registry().kernels[handle] = std::move(kernel);
  return handle;
}

// The arguments come first; pointers to scratch memory that the compiler adds come behind them.
bool agrees(const Description& description, const code::KernelCode& code) {
  constexpr size_t most_added = 2;
  size_t told = description.arguments().size(), taken = code.parameters.size();
  if (told > taken || taken - told > most_added) return false;
  for (size_t i = 0; i < taken; ++i) {
    bool is_pointer = i >= told || description.arguments()[i].is_tensor();
    if (is_pointer && code.parameters[i].bytes != sizeof(void*)) return false;
  }
  return true;
}

}  // namespace

const char* Arguments::find(size_t index, const code::Parameter& parameter) const {
  if (each) return static_cast<const char*>(each[index]);
  bool passed = buffer && parameter.offset + parameter.bytes <= buffer_bytes;
  return passed ? buffer + parameter.offset : nullptr;
}

Kernel* make(const std::string& name, const void* image) {
  auto kernel = std::make_unique<Kernel>();
  kernel->name = name;
  kernel->image = image;
  return add(std::move(kernel));
}

Kernel* make(const std::string& name, const code::KernelCode& code) {
  auto kernel = std::make_unique<Kernel>();
  kernel->name = name;
  kernel->code = code;
  kernel->is_read = true;
  return add(std::move(kernel));
}

Kernel* find(const void* handle) {
  std::shared_lock lock(registry().mutex);
  auto found = registry().kernels.find(handle);
  return found == registry().kernels.end() ? nullptr : found->second.get();
}

bool describe(const void* handle, const std::string& text) {
  Kernel* kernel = find(handle);
  std::optional<Description> description = Description::parse(text);
  if (!kernel || !kernel->is_read || !description || !agrees(*description, kernel->code)) return false;
  kernel->description = std::make_shared<const Description>(std::move(*description));
  return true;
}

Result launch(Kernel& kernel, const Shape& shape, streams::Handle stream, const Arguments& arguments) {
  bool owned = belongs_to(current_op());
  if (kernel.image && (!current_op() || kernel.description || (!owned && conditions::any()))) read_code(kernel);
  if (!is_possible(kernel, shape)) return Result::bad_configuration;
  if (!is_possible_cluster(kernel, shape)) return Result::bad_cluster;
  if (!fits(kernel, shape)) return Result::out_of_resources;
  if (shape.cooperative && !is_resident(kernel, shape)) return Result::too_large_for_cooperation;
  std::optional<StreamId> id = streams::enter(stream);
  if (!id) return Result::bad_stream;
  std::string described;
  if (kernel.description && kernel.is_read && !owned) described = kernel.description->pack(kernel.code, arguments);
  Launch launch;
  launch.kernel = kernel.name;
  launch.description = described;
  launch.description_pairs = Description::pairs;
  std::copy_n(shape.grid, 3, launch.grid);
  std::copy_n(shape.block, 3, launch.block);
  launch.resources = resources_of(kernel, shape);
  phantora::launch(*id, launch);
  if (kernel.signals) signals::issue(kernel, arguments, *id);
  if (conditions::note_launch(kernel, arguments, *id)) return Result::launched;
  if (kernel.signals && signals::is_known(*kernel.signals)) {
    note_carried();
    return Result::launched;
  }
  if (!owned && (!current_op() || kernel.description)) forget_results(kernel, arguments, *id);
  return Result::launched;
}

bool set_dynamic_shared_limit(Kernel& kernel, int bytes) {
  auto limit = static_cast<int>(config().shared_per_block_optin) - kernel.code.shared_bytes;
  if (bytes < 0 || bytes > limit) return false;
  kernel.dynamic_shared_limit = bytes;
  return true;
}

// The least of what threads, blocks, registers and shared memory of an SM allow.
int active_blocks_per_sm(const Kernel& kernel, int block_threads, size_t dynamic_shared_bytes) {
  if (block_threads <= 0 || block_threads > kernel.code.max_threads) return 0;
  int threads = (block_threads + warp - 1) / warp * warp;
  int by_threads = *device::attribute(39) / threads;
  int by_blocks = *device::attribute(106);
  int by_registers = registers_per_sm / (threads * registers_of(kernel));
  size_t shared = dynamic_shared_bytes + static_cast<size_t>(kernel.code.shared_bytes) + reserved_shared_bytes;
  return std::min({by_threads, by_blocks, by_registers, static_cast<int>(config().shared_per_sm / shared)});
}

// As if any SMs could share a cluster.
int active_clusters(const Kernel& kernel, const Shape& shape) {
  int blocks = active_blocks_per_sm(kernel, static_cast<int>(product(shape.block)), shape.shared_bytes);
  uint64_t cluster = shape.cluster[0] ? product(shape.cluster) : 1;
  return static_cast<int>(static_cast<uint64_t>(blocks) * config().sm_count / cluster);
}

}  // namespace phantora::kernels
