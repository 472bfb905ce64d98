// What compiled CUDA code does when it is loaded: registers its kernels and variables.
#include <forward_list>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "cudart/error.h"
#include "cudart/kernel_table.h"
#include "phantora/device.h"
#include "phantora/memory.h"
#include "phantora/transfer.h"

namespace phantora::cudart {

namespace {

struct Variable {
  size_t bytes;
  std::unordered_map<int, void*> addresses;  // by device
};

struct Named {
  const char* name;
  const void* image;
};

// libtorch registers tens of thousands of kernels and launches some hundreds: a Kernel is made when it is first used.
class Registry {
 public:
  void register_kernel(const void* host_address, const char* name, const void* image) {
    std::unique_lock lock(mutex_);
    names_[host_address] = {name, image};
  }

  void register_variable(const void* host_address, size_t bytes) {
    std::unique_lock lock(mutex_);
    variables_[host_address] = {bytes, {}};
  }

  kernels::Kernel* find_kernel(const void* function) {
    {
      std::shared_lock lock(mutex_);
      auto found = kernels_.find(function);
      if (found != kernels_.end()) return found->second;
    }
    std::unique_lock lock(mutex_);
    auto named = names_.find(function);
    if (named == names_.end()) return kernels::find(function);  // a cudaKernel_t may stand where a host address may
    kernels::Kernel*& kernel = kernels_[function];
    if (!kernel) kernel = kernels::make(named->second.name, named->second.image);
    return kernel;
  }

  Variable* find_variable(const void* symbol) {
    std::shared_lock lock(mutex_);
    auto found = variables_.find(symbol);
    return found == variables_.end() ? nullptr : &found->second;
  }

 private:
  std::shared_mutex mutex_;
  std::unordered_map<const void*, Named> names_;
  std::unordered_map<const void*, kernels::Kernel*> kernels_;
  std::unordered_map<const void*, Variable> variables_;
};

Registry& registry() {
  static Registry* table = new Registry;  // never destroyed: libraries unregister in exit handlers
  return *table;
}

std::mutex variable_mutex;

Status copy_symbol(const void* symbol, void* to, const void* from, size_t bytes, size_t offset, bool to_symbol,
                   Stream stream, transfer::Wait wait) {
  size_t size = 0;
  char* address = static_cast<char*>(symbol_address(symbol, &size));
  if (!address) return done(Status::invalid_symbol);
  if (offset > size || bytes > size - offset) return done(Status::invalid_value);
  std::optional<StreamId> id = streams::enter(stream);
  if (!id) return done(Status::invalid_resource_handle);
  transfer::copy(*id, to_symbol ? address + offset : to, to_symbol ? from : address + offset, bytes, wait);
  return Status::success;
}

}  // namespace

kernels::Kernel* find_kernel(const void* function) { return registry().find_kernel(function); }

void* symbol_address(const void* symbol, size_t* bytes) {
  Variable* variable = registry().find_variable(symbol);
  if (!variable) return nullptr;
  std::lock_guard lock(variable_mutex);
  void*& address = variable->addresses[device::current()];
  if (!address) address = memory::allocate(device::current(), variable->bytes);
  if (bytes) *bytes = variable->bytes;
  return address;
}

extern "C" {

// The handle is where the address of the image stands.
void** __cudaRegisterFatBinary(void* image) {
  static std::mutex mutex;
  static auto* images = new std::forward_list<void*>;  // never destroyed: kernels are registered with them till the end
  std::lock_guard lock(mutex);
  return &images->emplace_front(image);
}

void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
char __cudaInitModule(void**) { return 1; }

void __cudaRegisterFunction(void** image, const char* host_address, char*, const char* name, int, void*, void*, void*,
                            void*, int*) {
  registry().register_kernel(host_address, name, image ? *image : nullptr);
}

void __cudaRegisterVar(void**, char* host_address, char*, const char*, int, size_t bytes, int, int) {
  registry().register_variable(host_address, bytes);
}

Status __cudaGetKernel(KernelHandle* kernel, const void* function) {
  *kernel = find_kernel(function);
  return done(*kernel ? Status::success : Status::invalid_device_function);
}

Status cudaGetKernel(KernelHandle* kernel, const void* function) { return __cudaGetKernel(kernel, function); }
Status cudaGetFuncBySymbol(KernelHandle* kernel, const void* function) { return __cudaGetKernel(kernel, function); }

Status cudaGetSymbolAddress(void** pointer, const void* symbol) {
  *pointer = symbol_address(symbol, nullptr);
  return done(*pointer ? Status::success : Status::invalid_symbol);
}

Status cudaGetSymbolSize(size_t* bytes, const void* symbol) {
  return done(symbol_address(symbol, bytes) ? Status::success : Status::invalid_symbol);
}

Status cudaMemcpyToSymbol(const void* symbol, const void* src, size_t bytes, size_t offset, CopyKind) {
  return copy_symbol(symbol, nullptr, src, bytes, offset, true, nullptr, transfer::Wait::always);
}

Status cudaMemcpyToSymbolAsync(const void* symbol, const void* src, size_t bytes, size_t offset, CopyKind,
                               Stream stream) {
  return copy_symbol(symbol, nullptr, src, bytes, offset, true, stream, transfer::Wait::as_needed);
}

Status cudaMemcpyFromSymbol(void* dst, const void* symbol, size_t bytes, size_t offset, CopyKind) {
  return copy_symbol(symbol, dst, nullptr, bytes, offset, false, nullptr, transfer::Wait::always);
}

Status cudaMemcpyFromSymbolAsync(void* dst, const void* symbol, size_t bytes, size_t offset, CopyKind, Stream stream) {
  return copy_symbol(symbol, dst, nullptr, bytes, offset, false, stream, transfer::Wait::as_needed);
}

}  // extern "C"

}  // namespace phantora::cudart
