// Collectives, sends and receives, groups, and the reductions that callers make.
#include <cstring>
#include <string>

#include "nccl/buffer.h"
#include "nccl/collective.h"
#include "nccl/error.h"
#include "nccl/group.h"
#include "nccl/reduction.h"
#include "nccl/types.h"
#include "phantora/export.h"
#include "phantora/streams.h"

namespace phantora::nccl {
namespace {

Result enqueue(const char* function, Handle comm, const Collective& collective, streams::Handle stream) {
  return guarded(function,
                 [&] { return in_group([&](Group& group) { group.add(find_ready(comm), collective, stream); }); });
}

Result enqueue(const char* function, Handle comm, bool sends, int peer, void* buffer, size_t count, DataType type,
               streams::Handle stream) {
  return guarded(function, [&] {
    return in_group([&](Group& group) {
      check_type(type);
      group.add(find_ready(comm), Transfer{sends, peer, buffer, count * element_bytes(type)}, stream);
    });
  });
}

}  // namespace
}  // namespace phantora::nccl

using namespace phantora;
using namespace phantora::nccl;
using Kind = CollectiveKind;

extern "C" {

PHANTORA_EXPORT Result ncclAllReduce(const void* send, void* receive, size_t count, DataType type, RedOp op,
                                     Handle comm, streams::Handle stream) {
  return enqueue(__func__, comm, {Kind::all_reduce, count, type, op, -1, send, receive}, stream);
}

PHANTORA_EXPORT Result ncclReduce(const void* send, void* receive, size_t count, DataType type, RedOp op, int root,
                                  Handle comm, streams::Handle stream) {
  return enqueue(__func__, comm, {Kind::reduce, count, type, op, root, send, receive}, stream);
}

PHANTORA_EXPORT Result ncclReduceScatter(const void* send, void* receive, size_t receive_count, DataType type, RedOp op,
                                         Handle comm, streams::Handle stream) {
  return enqueue(__func__, comm, {Kind::reduce_scatter, receive_count, type, op, -1, send, receive}, stream);
}

PHANTORA_EXPORT Result ncclBroadcast(const void* send, void* receive, size_t count, DataType type, int root,
                                     Handle comm, streams::Handle stream) {
  return enqueue(__func__, comm, {Kind::broadcast, count, type, RedOp::sum, root, send, receive}, stream);
}

PHANTORA_EXPORT Result ncclBcast(void* buffer, size_t count, DataType type, int root, Handle comm,
                                 streams::Handle stream) {
  return enqueue(__func__, comm, {Kind::broadcast, count, type, RedOp::sum, root, buffer, buffer}, stream);
}

PHANTORA_EXPORT Result ncclAllGather(const void* send, void* receive, size_t send_count, DataType type, Handle comm,
                                     streams::Handle stream) {
  return enqueue(__func__, comm, {Kind::all_gather, send_count, type, RedOp::sum, -1, send, receive}, stream);
}

PHANTORA_EXPORT Result ncclAlltoAll(const void* send, void* receive, size_t count, DataType type, Handle comm,
                                    streams::Handle stream) {
  return enqueue(__func__, comm, {Kind::all_to_all, count, type, RedOp::sum, -1, send, receive}, stream);
}

PHANTORA_EXPORT Result ncclGather(const void* send, void* receive, size_t count, DataType type, int root, Handle comm,
                                  streams::Handle stream) {
  return enqueue(__func__, comm, {Kind::gather, count, type, RedOp::sum, root, send, receive}, stream);
}

PHANTORA_EXPORT Result ncclScatter(const void* send, void* receive, size_t count, DataType type, int root, Handle comm,
                                   streams::Handle stream) {
  return enqueue(__func__, comm, {Kind::scatter, count, type, RedOp::sum, root, send, receive}, stream);
}

PHANTORA_EXPORT Result ncclSend(const void* buffer, size_t count, DataType type, int peer, Handle comm,
                                streams::Handle stream) {
  return enqueue(__func__, comm, true, peer, const_cast<void*>(buffer), count, type, stream);
}

PHANTORA_EXPORT Result ncclRecv(void* buffer, size_t count, DataType type, int peer, Handle comm,
                                streams::Handle stream) {
  return enqueue(__func__, comm, false, peer, buffer, count, type, stream);
}

PHANTORA_EXPORT Result ncclGroupStart() {
  Group::current().start();
  return Result::success;
}

PHANTORA_EXPORT Result ncclGroupEnd() {
  return guarded(__func__, [] { return Group::current().end(); });
}

PHANTORA_EXPORT Result ncclRedOpCreatePreMulSum(RedOp* op, void* scalar, DataType type, ScalarResidence residence,
                                                Handle comm) {
  return guarded(__func__, [&] {
    if (op == nullptr || scalar == nullptr) reject("op or scalar is NULL");
    check_type(type);
    const CommunicatorPtr communicator = find_ready(comm);
    CustomReduction reduction{type, nullptr, 0};
    if (residence == ScalarResidence::host_immediate) {
      std::memcpy(&reduction.scalar, scalar, element_bytes(type));
    } else {
      check_buffer(*communicator, scalar, element_bytes(type), "scalar");
      reduction.device_scalar = scalar;
    }
    const std::lock_guard lock(communicator->mutex);
    *op = static_cast<RedOp>(static_cast<size_t>(RedOp::custom) + communicator->add_custom(reduction));
    return Result::success;
  });
}

PHANTORA_EXPORT Result ncclRedOpDestroy(RedOp op, Handle comm) {
  return guarded(__func__, [&] {
    const CommunicatorPtr communicator = find_ready(comm);
    const std::lock_guard lock(communicator->mutex);
    const int slot = static_cast<int>(op) - static_cast<int>(RedOp::custom);
    if (slot < 0 || slot >= static_cast<int>(communicator->custom.size()) || !communicator->custom[slot]) {
      reject("reduction operation " + std::to_string(static_cast<int>(op)) + " is none that was made");
    }
    communicator->custom[slot].reset();
    return Result::success;
  });
}

}  // extern "C"
