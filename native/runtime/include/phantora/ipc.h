// Device memory of one process, opened in others of the same node: behind cudaIpcGetMemHandle and cudaIpcOpenMemHandle.
#pragma once
#include <cstddef>
#include <cstdint>

#include "phantora/export.h"

namespace phantora {
namespace ipc PHANTORA_EXPORT {

struct MemoryHandle {
  char bytes[64];
};

bool export_memory(void* pointer, MemoryHandle* handle);  // false: not memory from memory::allocate()

enum class Opened { yes, in_own_process, no_such_memory };
Opened open_memory(const MemoryHandle& handle, void** pointer);
bool close_memory(void* pointer);  // false: not opened

// The addresses are given back; what other processes opened stays theirs.
void forget(void* base, size_t bytes);

}  // namespace ipc PHANTORA_EXPORT
}  // namespace phantora
