#include "definitions.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace phantora::netsim {

namespace {

constexpr int64_t kMostNumbers = int64_t{1} << 24;  // of one kind of definition in one rank: they are dense from 1
constexpr int64_t kMostMembers = int64_t{1} << 24;
constexpr double kGreatestSlowdown = 1e6;

void require(bool condition, const std::string& otherwise) {
  if (!condition) throw std::invalid_argument(otherwise);
}

// "rank 3: kernel 17": how messages begin.
std::string subject(RankId rank, const char* what, int64_t number) {
  return "rank " + std::to_string(index(rank)) + ": " + what + " " + std::to_string(number);
}

void require_number(RankId rank, const char* what, int64_t number) {
  require(number >= 0 && number < kMostNumbers,
          subject(rank, what, number) + " is not a number of a definition (0 .. 2^24 - 1)");
}

template <class T>
T& grown(std::vector<T>& items, int64_t number) {
  if (items.size() <= static_cast<size_t>(number)) items.resize(static_cast<size_t>(number) + 1);
  return items[static_cast<size_t>(number)];
}

template <class T>
const T* found(const std::vector<std::optional<T>>& items, uint64_t number) {
  return number < items.size() && items[number] ? &*items[number] : nullptr;
}

template <class T>
void define_once(std::optional<T>& item, const T& value, const std::string& subject) {
  require(!item || *item == value, subject + " is defined already, and differently");
  item = value;
}

bool equal(const Activity& x, const Activity& y) {
  return x.volume_bytes == y.volume_bytes && x.latency == y.latency && x.links == y.links && x.max_rate == y.max_rate;
}

bool equal(const std::shared_ptr<const Activity>& x, const std::shared_ptr<const Activity>& y) {
  return x == y || (x && y && equal(*x, *y));
}

bool equal(const Call& x, const Call& y) {
  return x.comm == y.comm && x.member == y.member && x.key == y.key && equal(x.activity, y.activity) &&
         x.receives == y.receives && x.eager == y.eager &&
         std::equal(x.sends.begin(), x.sends.end(), y.sends.begin(), y.sends.end(),
                    [](const Call::Send& a, const Call::Send& b) {
                      return a.peer == b.peer && a.key == b.key && equal(a.activity, b.activity);
                    });
}

}  // namespace

void Definitions::define_device(RankId rank, int64_t device, Slowdown slowdown) {
  const std::string what = subject(rank, "device", device);
  require(device >= 0 && device < int64_t{1} << 31, what + " does not exist");
  for (const double factor : {slowdown.compute, slowdown.communication}) {
    require(factor >= 1 && factor <= kGreatestSlowdown,
            what + ": a slowdown of " + std::to_string(factor) + ", must be within 1 .. 1e6");
  }
  OfRank& of_rank = of_rank_[rank];
  require(std::none_of(of_rank.devices.begin(), of_rank.devices.end(), [&](int32_t used) { return used == device; }),
          what + " has streams already\n  hint: define a device before its streams");
  require(std::none_of(of_rank.slowdowns.begin(), of_rank.slowdowns.end(),
                       [&](const auto& known) { return known.first == device; }),
          what + " is defined already");
  of_rank.slowdowns.emplace_back(static_cast<int32_t>(device), slowdown);
}

void Definitions::define_stream(RankId rank, int64_t stream, int64_t device) {
  require_number(rank, "stream", stream);
  require(device >= 0 && device < int64_t{1} << 31,
          subject(rank, "stream", stream) + ": there is no device " + std::to_string(device));
  auto& devices = of_rank_[rank].devices;
  if (devices.size() <= static_cast<size_t>(stream)) devices.resize(static_cast<size_t>(stream) + 1, -1);
  int32_t& known = devices[static_cast<size_t>(stream)];
  require(known < 0 || known == device, subject(rank, "stream", stream) + " is defined already, on another device");
  known = static_cast<int32_t>(device);
}

void Definitions::define_kernel(RankId rank, int64_t signature, KernelCost cost) {
  require_number(rank, "kernel", signature);
  require(cost.duration >= 0 && cost.duration <= kLast && cost.later >= 0 && cost.later <= kLast,
          subject(rank, "kernel", signature) + " lasts " + std::to_string(cost.duration) + " ns, later launches " +
              std::to_string(cost.later) + " ns; both must be within 0 .. 2^62 - 1");
  require(cost.share <= kWholeDevice, subject(rank, "kernel", signature) + " fills " + std::to_string(cost.share) +
                                          "/1024 of its device, must be within 0 .. 1024");
  define_once(grown(of_rank_[rank].kernels, signature), cost, subject(rank, "kernel", signature));
}

CommId Definitions::define_comm(int64_t name, int64_t size) {
  require(size > 0 && size <= kMostMembers, "communicator " + std::to_string(name) + " has " + std::to_string(size) +
                                                " members, must be within 1 .. 2^24");
  const auto known = comm_ids_.find(name);
  if (known == comm_ids_.end()) {
    const CommId id = comms_.add({name, static_cast<uint32_t>(size), {}});
    comms_[id].members.resize(static_cast<size_t>(size));
    comm_ids_.emplace(name, id);
    return id;
  }
  require(comms_[known->second].size == size, "communicator " + std::to_string(name) + " is defined already, with " +
                                                  std::to_string(comms_[known->second].size) + " members, not " +
                                                  std::to_string(size));
  return known->second;
}

CommId Definitions::find_comm(int64_t name, const std::string& what) const {
  const auto known = comm_ids_.find(name);
  require(known != comm_ids_.end(), what + ": communicator " + std::to_string(name) + " is not defined");
  return known->second;
}

void Definitions::check_member(CommId comm, int64_t member, const std::string& what) const {
  require(member >= 0 && member < comms_[comm].size, what + ": there is no member " + std::to_string(member) +
                                                         " in communicator " + std::to_string(comms_[comm].name) +
                                                         " of " + std::to_string(comms_[comm].size));
}

// The rank is that member from now on, and nobody else.
void Definitions::own(CommId comm, uint32_t member, RankId rank, const std::string& what) {
  std::optional<RankId>& owner = comms_[comm].members[member];
  require(!owner || *owner == rank, what + ": member " + std::to_string(member) + " of communicator " +
                                        std::to_string(comms_[comm].name) + " is rank " +
                                        std::to_string(owner ? index(*owner) : 0) + " already");
  owner = rank;
}

void Definitions::check_links(const Activity& activity) const {
  for (const Use& use : activity.links) {
    require(index(use.link) < links_, "an activity uses link " + std::to_string(index(use.link)) + ", but there are " +
                                          std::to_string(links_) +
                                          " links\n  hint: add links before the simulation is made");
  }
}

void Definitions::define_call(RankId rank, int64_t definition, int64_t comm, Call call) {
  const std::string what = subject(rank, "collective", definition);
  require_number(rank, "collective", definition);
  call.comm = find_comm(comm, what);
  check_member(call.comm, call.member, what);
  for (const Call::Receive& receive : call.receives) check_member(call.comm, receive.peer, what);
  for (const Call::Send& send : call.sends) {
    check_member(call.comm, send.peer, what);
    check_links(*send.activity);
  }
  if (call.activity) check_links(*call.activity);
  auto& calls = of_rank_[rank].calls;
  const Call* earlier = this->call(rank, static_cast<uint64_t>(definition));
  require(!earlier || equal(*earlier, call), what + " is defined already, and differently");
  own(call.comm, call.member, rank, what);
  if (!earlier) grown(calls, definition) = std::make_unique<const Call>(std::move(call));
}

void Definitions::define_abort(RankId rank, int64_t definition, int64_t comm, int64_t member) {
  const std::string what = subject(rank, "abort", definition);
  require_number(rank, "abort", definition);
  const CommId id = find_comm(comm, what);
  check_member(id, member, what);
  const Abort* earlier = abort(rank, static_cast<uint64_t>(definition));
  const Abort value{id, static_cast<uint32_t>(member)};
  require(!earlier || *earlier == value, what + " is defined already, and differently");
  own(id, value.member, rank, what);
  grown(of_rank_[rank].aborts, definition) = value;
}

HostGroupId Definitions::define_host_call(RankId rank, int64_t definition, int64_t group, int64_t size,
                                          int64_t cost_ns) {
  const std::string what = subject(rank, "host group", definition);
  require_number(rank, "host group", definition);
  require(size > 0 && size <= kMostMembers,
          what + " has " + std::to_string(size) + " members, must be within 1 .. 2^24");
  require(cost_ns >= 0 && cost_ns <= kLast,
          what + " costs " + std::to_string(cost_ns) + " ns, must be within 0 .. 2^62 - 1");
  const auto known = host_group_ids_.find(group);
  const HostGroup* existing = known == host_group_ids_.end() ? nullptr : &host_groups_[known->second];
  require(!existing || existing->size == size, what + ": group " + std::to_string(group) + " has " +
                                                   std::to_string(existing ? existing->size : 0) + " members, not " +
                                                   std::to_string(size));
  const bool joins =
      !existing || std::find(existing->members.begin(), existing->members.end(), rank) == existing->members.end();
  require(!existing || !joins || existing->members.size() < existing->size,
          what + ": all " + std::to_string(size) + " members of group " + std::to_string(group) + " are other ranks");
  const HostGroupId id = existing ? known->second : HostGroupId(host_groups_.size());
  define_once(grown(of_rank_[rank].host_calls, definition), HostCall{id, cost_ns}, what);
  if (!existing) {
    host_groups_.add({group, static_cast<uint32_t>(size), {}});
    host_group_ids_.emplace(group, id);
  }
  if (joins) host_groups_[id].members.push_back(rank);
  return id;
}

int32_t Definitions::device(RankId rank, uint32_t stream) const {
  const auto& devices = of_rank_[rank].devices;
  return stream < devices.size() ? devices[stream] : -1;
}

const Slowdown* Definitions::slowdown(RankId rank, int32_t device) const {
  for (const auto& [number, slowdown] : of_rank_[rank].slowdowns) {
    if (number == device) return &slowdown;
  }
  return nullptr;
}

const KernelCost* Definitions::kernel(RankId rank, uint64_t signature) const {
  return found(of_rank_[rank].kernels, signature);
}

const Call* Definitions::call(RankId rank, uint64_t definition) const {
  const auto& calls = of_rank_[rank].calls;
  return definition < calls.size() ? calls[definition].get() : nullptr;
}

const Abort* Definitions::abort(RankId rank, uint64_t definition) const {
  return found(of_rank_[rank].aborts, definition);
}

const HostCall* Definitions::host_call(RankId rank, uint64_t definition) const {
  return found(of_rank_[rank].host_calls, definition);
}

}  // namespace phantora::netsim
