// Code that a program loads at run time (cuModule, cuLibrary, cudaLibrary): its kernels and variables by name.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "phantora/export.h"
#include "phantora/kernels.h"

namespace phantora {
namespace modules PHANTORA_EXPORT {

using Handle = void*;

Handle load(const void* image);
Handle load_file(const char* path);  // null: there is no such file
bool unload(Handle module);
bool is_loaded(Handle module);

// Null if there is none of that name. Kernels keep their handle, and live on when the module goes.
kernels::Kernel* find_kernel(Handle module, const std::string& name);
std::vector<std::string> kernel_names(Handle module);  // empty, too, where the image cannot be read

// On the current device; null if there is none of that name.
void* find_variable(Handle module, const std::string& name, size_t* bytes);

}  // namespace modules PHANTORA_EXPORT
}  // namespace phantora
