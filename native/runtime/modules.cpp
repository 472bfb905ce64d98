#include "phantora/modules.h"

#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "phantora/device.h"
#include "phantora/memory.h"
#include "phantora/values.h"

namespace phantora::modules {
namespace {

class Module {
 public:
  explicit Module(const void* image) : image_(code::Image::read(image)) {}

  ~Module() {
    for (const auto& [key, address] : variables_) memory::release(address);
  }

  kernels::Kernel* find_kernel(const std::string& name) {
    const code::KernelCode* code = image_.find_kernel(name);
    if (!code && image_.is_known()) return nullptr;
    kernels::Kernel*& kernel = kernels_[name];
    if (!kernel) kernel = code ? kernels::make(name, *code) : kernels::make(name);
    return kernel;
  }

  std::vector<std::string> kernel_names() const {
    std::vector<std::string> names;
    for (const auto& [name, code] : image_.kernels()) names.push_back(name);
    return names;
  }

  void* find_variable(const std::string& name, size_t* bytes) {
    const code::Variable* variable = image_.find_variable(name);
    if (!variable) return nullptr;
    void*& address = variables_[{name, device::current()}];
    if (!address) address = make(*variable);
    if (bytes) *bytes = variable->bytes;
    return address;
  }

 private:
  static void* make(const code::Variable& variable) {
    void* address = memory::allocate(device::current(), variable.bytes);
    if (!address) return nullptr;
    std::string initial = variable.initial;
    initial.resize(variable.bytes);
    initial.copy(static_cast<char*>(address), initial.size());
    values::mark_known(address, initial.size());
    return address;
  }

  code::Image image_;
  std::map<std::string, kernels::Kernel*> kernels_;
  std::map<std::pair<std::string, int>, void*> variables_;  // by name and device
};

struct Loaded {
  std::mutex mutex;
  std::unordered_map<Handle, std::unique_ptr<Module>> modules;
};

Loaded& loaded() {
  static Loaded* loaded = new Loaded;  // never destroyed: used by exit handlers
  return *loaded;
}

// What `use` makes of the module; nothing if there is none.
template <typename Use>
auto with(Handle handle, Use&& use) -> decltype(use(std::declval<Module&>())) {
  std::lock_guard lock(loaded().mutex);
  auto found = loaded().modules.find(handle);
  if (found == loaded().modules.end()) return {};
  return use(*found->second);
}

}  // namespace

Handle load(const void* image) {
  auto module = std::make_unique<Module>(image);
  Handle handle = module.get();
  std::lock_guard lock(loaded().mutex);
  loaded().modules[handle] = std::move(module);
  return handle;
}

Handle load_file(const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return nullptr;
  std::string image{std::istreambuf_iterator<char>(file), {}};
  return load(image.c_str());
}

bool unload(Handle module) {
  std::lock_guard lock(loaded().mutex);
  return loaded().modules.erase(module) > 0;
}

bool is_loaded(Handle module) {
  return with(module, [](Module&) { return true; });
}

kernels::Kernel* find_kernel(Handle module, const std::string& name) {
  return with(module, [&](Module& m) { return m.find_kernel(name); });
}

std::vector<std::string> kernel_names(Handle module) {
  return with(module, [](Module& m) { return m.kernel_names(); });
}

void* find_variable(Handle module, const std::string& name, size_t* bytes) {
  return with(module, [&](Module& m) { return m.find_variable(name, bytes); });
}

}  // namespace phantora::modules
