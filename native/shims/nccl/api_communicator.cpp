// ncclComm…: how communicators are made, asked and ended.
#include <optional>
#include <string>

#include "nccl/communicator.h"
#include "nccl/error.h"
#include "nccl/group.h"
#include "nccl/setup.h"
#include "nccl/types.h"
#include "phantora/device.h"
#include "phantora/export.h"
#include "phantora/recorder.h"

namespace phantora::nccl {
namespace {

constexpr int max_device_count = 1024;

struct Options {
  bool blocking = true;
  bool shares_buffers = false;  // with the parent of a split
  std::string name;
};

// Callers compiled against an older NCCL hand over a shorter structure; what it lacks is at its default.
Options read(const Config* config, bool blocking_by_default) {
  Options options{.blocking = blocking_by_default};
  if (config == nullptr) return options;
  if (config->magic != config_magic) reject("config was not initialised with NCCL_CONFIG_INITIALIZER");
  const auto within = [&](const auto& field) {
    const auto offset = reinterpret_cast<const char*>(&field) - reinterpret_cast<const char*>(config);
    return static_cast<size_t>(offset) + sizeof field <= config->size;
  };
  const auto given = [&](const int& field) { return within(field) && field != undefined_int; };
  if (given(config->blocking)) {
    if (config->blocking != 0 && config->blocking != 1) reject("config.blocking is neither 0 nor 1");
    options.blocking = config->blocking == 1;
  }
  if (given(config->split_share)) options.shares_buffers = config->split_share == 1;
  if (within(config->comm_name) && config->comm_name != nullptr) options.name = config->comm_name;
  return options;
}

void require(const void* pointer, const char* what) {
  if (pointer == nullptr) reject(std::string(what) + " is NULL");
}

Result init(Handle* comm, int size, std::string uid, int rank, const Config* config) {
  require(comm, "comm");
  *comm = nullptr;
  if (size < 1 || rank < 0 || rank >= size) {
    reject("rank " + std::to_string(rank) + " of " + std::to_string(size) + " ranks");
  }
  const Options options = read(config, true);
  const auto communicator = std::make_shared<Communicator>(device::current(), options.blocking);
  communicator->name = options.name;
  return in_group(
      [&](Group& group) { group.add(init_rank(communicator, std::move(uid), size, rank), communicator, comm); });
}

// Trailing zeros are no part of it, so that it prints.
std::string text_of(const UniqueId& id) {
  const std::string all(id.internal, sizeof id.internal);
  return all.substr(0, all.find_last_not_of('\0') + 1);
}

}  // namespace
}  // namespace phantora::nccl

using namespace phantora;
using namespace phantora::nccl;

extern "C" {

PHANTORA_EXPORT Result ncclGetUniqueId(UniqueId* id) {
  return guarded(__func__, [&] {
    require(id, "uniqueId");
    *id = {};
    fresh_uid().copy(id->internal, sizeof id->internal);
    return Result::success;
  });
}

PHANTORA_EXPORT Result ncclCommInitRankConfig(Handle* comm, int size, UniqueId id, int rank, Config* config) {
  return guarded(__func__, [&] { return init(comm, size, text_of(id), rank, config); });
}

PHANTORA_EXPORT Result ncclCommInitRank(Handle* comm, int size, UniqueId id, int rank) {
  return guarded(__func__, [&] { return init(comm, size, text_of(id), rank, nullptr); });
}

PHANTORA_EXPORT Result ncclCommInitRankScalable(Handle* comm, int size, int rank, int ids, UniqueId* id,
                                                Config* config) {
  return guarded(__func__, [&] {
    require(id, "commIds");
    if (ids < 1 || ids > size) reject(std::to_string(ids) + " unique ids for " + std::to_string(size) + " ranks");
    std::string uid;
    for (int i = 0; i < ids; ++i) uid.append(i == 0 ? "" : " ").append(text_of(id[i]));
    return init(comm, size, std::move(uid), rank, config);
  });
}

PHANTORA_EXPORT Result ncclCommInitAll(Handle* comms, int count, const int* devices) {
  return guarded(__func__, [&] {
    require(comms, "comm");
    if (count < 1 || count > max_device_count) reject(std::to_string(count) + " devices");
    const std::string uid = fresh_uid();
    return in_group([&](Group& group) {
      for (int i = 0; i < count; ++i) {
        const int device = devices == nullptr ? i : devices[i];
        if (device < 0 || device >= device::count()) reject("there is no device " + std::to_string(device));
        const auto communicator = std::make_shared<Communicator>(device, true);
        group.add(init_rank(communicator, uid, count, i), communicator, &comms[i]);
      }
    });
  });
}

PHANTORA_EXPORT Result ncclCommSplit(Handle comm, int color, int key, Handle* child, Config* config) {
  return guarded(__func__, [&] {
    require(child, "newcomm");
    *child = nullptr;
    const CommunicatorPtr parent = find_ready(comm);
    parent->check_usable();
    if (color < 0 && color != no_color) reject("color " + std::to_string(color) + " is negative");
    const Options options = read(config, parent->blocking);
    CommunicatorPtr communicator;
    if (color != no_color) {
      communicator = std::make_shared<Communicator>(parent->device, options.blocking);
      communicator->name = options.name;
    }
    return in_group([&](Group& group) {
      group.add(split(parent, color, key, communicator, options.shares_buffers), communicator, child);
    });
  });
}

PHANTORA_EXPORT Result ncclCommFinalize(Handle comm) {
  return guarded(__func__, [&] {
    const CommunicatorPtr communicator = find_ready(comm);
    communicator->finalize();
    communicator->complete();
    return Result::success;
  });
}

PHANTORA_EXPORT Result ncclCommDestroy(Handle comm) {
  return guarded(__func__, [&] {
    if (comm == nullptr) return Result::success;
    const CommunicatorPtr communicator = withdraw(comm);
    communicator->complete();
    communicator->destroy();
    return Result::success;
  });
}

PHANTORA_EXPORT Result ncclCommAbort(Handle comm) {
  return guarded(__func__, [&] {
    if (comm != nullptr) withdraw(comm)->abort();
    return Result::success;
  });
}

// The watchdog threads of frameworks ask all the time: they have no lane and do not wait for a set-up.
PHANTORA_EXPORT Result ncclCommGetAsyncError(Handle comm, Result* state) {
  return guarded(__func__, [&] {
    require(state, "asyncError");
    const CommunicatorPtr communicator = find(comm);
    *state = Result::success;
    if (recorder::is_observer()) {
      const std::lock_guard lock(communicator->mutex);
      if (communicator->setup != nullptr) *state = Result::in_progress;
      return Result::success;
    }
    try {
      settle(*communicator);
    } catch (const Error& error) {
      *state = error.result;
      remember_error(__func__, error.what());
    }
    return Result::success;
  });
}

PHANTORA_EXPORT Result ncclCommCount(Handle comm, int* count) {
  return guarded(__func__, [&] {
    require(count, "count");
    *count = find_ready(comm)->size;
    return Result::success;
  });
}

PHANTORA_EXPORT Result ncclCommCuDevice(Handle comm, int* device) {
  return guarded(__func__, [&] {
    require(device, "device");
    *device = find_ready(comm)->device;
    return Result::success;
  });
}

PHANTORA_EXPORT Result ncclCommUserRank(Handle comm, int* rank) {
  return guarded(__func__, [&] {
    require(rank, "rank");
    *rank = find_ready(comm)->index;
    return Result::success;
  });
}

PHANTORA_EXPORT Result ncclCommMemStats(Handle comm, MemoryStatistic statistic, uint64_t* value) {
  return guarded(__func__, [&] {
    require(value, "value");
    const uint64_t total = find_ready(comm)->buffer_bytes;
    switch (statistic) {
      case MemoryStatistic::total:
      case MemoryStatistic::persistent:
        *value = total;
        return Result::success;
      case MemoryStatistic::suspendable:
      case MemoryStatistic::suspended:
        *value = 0;
        return Result::success;
    }
    reject("memory statistic " + std::to_string(static_cast<int>(statistic)) + " is none");
  });
}

}  // extern "C"
