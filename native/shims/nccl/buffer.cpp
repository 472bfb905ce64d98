#include "nccl/buffer.h"

#include <string>

#include "nccl/error.h"
#include "phantora/memory.h"

namespace phantora::nccl {

void check_type(DataType type) {
  const int value = static_cast<int>(type);
  if (value < 0 || value >= data_type_count) reject("data type " + std::to_string(value) + " is none");
}

void check_member(const Communicator& communicator, int member, const char* what) {
  if (member >= 0 && member < communicator.size) return;
  reject(std::string(what) + " " + std::to_string(member) + " is not in a communicator of " +
         std::to_string(communicator.size) + " ranks");
}

void check_buffer(const Communicator& communicator, const void* buffer, size_t bytes, const char* what) {
  if (bytes == 0) return;
  if (buffer == nullptr) reject(std::string(what) + " is NULL");
  const memory::Region region = memory::find(buffer);
  if (region.kind == memory::Kind::plain) reject(std::string(what) + " is neither device nor pinned memory");
  if (region.kind == memory::Kind::device && region.device != communicator.device) {
    reject(std::string(what) + " lies on device " + std::to_string(region.device) + ", the communicator on device " +
           std::to_string(communicator.device));
  }
}

}  // namespace phantora::nccl
