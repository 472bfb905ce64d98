// What the ranks' records refer to by number. Definitions come at any time before their first use and never change.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "activity.h"
#include "ids.h"
#include "overlap.h"
#include "sim_time.h"

namespace phantora::netsim {

struct KernelCost {
  Time duration = 0;
  Time later = 0;      // of a later launch of an op already counted
  uint16_t share = 0;  // of its device that it fills, in 1/kWholeDevice
  bool operator==(const KernelCost&) const = default;
};

// One member's part of a collective, or its launch of sends and receives.
struct Call {
  struct Send {
    uint32_t peer;
    uint64_t key;
    std::shared_ptr<const Activity> activity;
  };
  struct Receive {
    uint32_t peer;
    uint64_t key;
    bool operator==(const Receive&) const = default;
  };

  CommId comm{};
  uint32_t member = 0;
  uint64_t key = 0;
  std::shared_ptr<const Activity> activity;  // null for a launch of sends and receives
  std::vector<Send> sends;
  std::vector<Receive> receives;
  bool eager = false;  // its sends wait for no receivers

  bool point_to_point() const { return activity == nullptr; }
};

// A communicator that a rank gives up, and what it is in it.
struct Abort {
  CommId comm{};
  uint32_t member = 0;
  bool operator==(const Abort&) const = default;
};

struct HostCall {
  HostGroupId group{};
  Time cost = 0;
  bool operator==(const HostCall&) const = default;
};

// All of it throws std::invalid_argument for what makes no sense, and for a second definition that differs from the
// first.
class Definitions {
 public:
  Definitions(size_t ranks, size_t links) : links_(links) { of_rank_.resize(ranks); }

  void define_device(RankId rank, int64_t device, Slowdown slowdown);
  void define_stream(RankId rank, int64_t stream, int64_t device);
  void define_kernel(RankId rank, int64_t signature, KernelCost cost);
  CommId define_comm(int64_t name, int64_t size);
  void define_call(RankId rank, int64_t definition, int64_t comm, Call call);
  void define_abort(RankId rank, int64_t definition, int64_t comm, int64_t member);
  HostGroupId define_host_call(RankId rank, int64_t definition, int64_t group, int64_t size, int64_t cost_ns);

  int32_t device(RankId rank, uint32_t stream) const;           // -1: not defined
  const Slowdown* slowdown(RankId rank, int32_t device) const;  // null: not defined
  const KernelCost* kernel(RankId rank, uint64_t signature) const;
  const Call* call(RankId rank, uint64_t definition) const;
  const Abort* abort(RankId rank, uint64_t definition) const;
  const HostCall* host_call(RankId rank, uint64_t definition) const;

  uint32_t comm_size(CommId comm) const { return comms_[comm].size; }
  int64_t comm_name(CommId comm) const { return comms_[comm].name; }
  size_t comms() const { return comms_.size(); }
  std::optional<RankId> member_rank(CommId comm, uint32_t member) const { return comms_[comm].members[member]; }
  uint32_t host_group_size(HostGroupId group) const { return host_groups_[group].size; }
  int64_t host_group_name(HostGroupId group) const { return host_groups_[group].name; }
  const std::vector<RankId>& host_group_members(HostGroupId group) const { return host_groups_[group].members; }
  size_t host_groups() const { return host_groups_.size(); }

 private:
  struct OfRank {
    std::vector<std::pair<int32_t, Slowdown>> slowdowns;  // by device, few
    std::vector<int32_t> devices;                         // by stream
    std::vector<std::optional<KernelCost>> kernels;       // by number
    std::vector<std::unique_ptr<const Call>> calls;
    std::vector<std::optional<Abort>> aborts;
    std::vector<std::optional<HostCall>> host_calls;
  };
  struct Comm {
    int64_t name;
    uint32_t size;
    std::vector<std::optional<RankId>> members;
  };
  struct HostGroup {
    int64_t name;
    uint32_t size;
    std::vector<RankId> members;
  };

  CommId find_comm(int64_t name, const std::string& what) const;
  void check_member(CommId comm, int64_t member, const std::string& what) const;
  void own(CommId comm, uint32_t member, RankId rank, const std::string& what);
  void check_links(const Activity& activity) const;

  size_t links_;
  Table<RankId, OfRank> of_rank_;
  Table<CommId, Comm> comms_;
  std::unordered_map<int64_t, CommId> comm_ids_;
  Table<HostGroupId, HostGroup> host_groups_;
  std::unordered_map<int64_t, HostGroupId> host_group_ids_;
};

}  // namespace phantora::netsim
