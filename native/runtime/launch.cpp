#include "phantora/launch.h"

#include <cstring>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "phantora/activity.h"
#include "phantora/capture.h"
#include "phantora/config.h"
#include "phantora/counters.h"

namespace phantora {

namespace {

thread_local OpScope* innermost_op = nullptr;

// FNV-1a over the fields of a signature; 64 bits are enough for the few thousand signatures of a job.
class Hash {
 public:
  template <typename Number>
  Hash& number(Number value) {
    return bytes(&value, sizeof value);
  }
  Hash& text(std::string_view value) { return number(value.size()).bytes(value.data(), value.size()); }
  uint64_t value() const { return value_; }

 private:
  Hash& bytes(const void* data, size_t size) {
    const auto* p = static_cast<const unsigned char*>(data);
    for (size_t i = 0; i < size; ++i) value_ = (value_ ^ p[i]) * 0x100000001b3;
    return *this;
  }

  uint64_t value_ = 0xcbf29ce484222325;
};

uint64_t hash_of(const OpScope* op, const Launch& launch) {
  Hash hash;
  hash.number(op ? op->hash : 0).text(launch.kernel);
  for (int64_t size : launch.gemm) hash.number(size);
  for (std::string_view type : launch.gemm_types) hash.text(type);
  for (bool transposed : launch.gemm_trans) hash.number(transposed);
  hash.text(launch.copy_kind ? launch.copy_kind : "").number(launch.copy_bytes);
  hash.number(launch.copy_is_pageable).number(launch.host_func);
  hash.text(launch.description);
  for (uint32_t size : launch.grid) hash.number(size);
  for (uint32_t size : launch.block) hash.number(size);
  const Resources& resources = launch.resources;
  hash.number(resources.registers).number(resources.static_shared_bytes).number(resources.dynamic_shared_bytes);
  return hash.value();
}

// The pairs of a signature's map that come from the launch.
class LaunchPairs {
 public:
  explicit LaunchPairs(const Launch& launch) {
    if (!launch.kernel.empty()) key("kernel").text(launch.kernel);
    if (launch.gemm[3] != 0) add_gemm(launch);
    if (launch.copy_kind) {
      key("copy").array(launch.copy_is_pageable ? 3 : 2).text(launch.copy_kind);
      pack_.integer(static_cast<int64_t>(launch.copy_bytes));
      if (launch.copy_is_pageable) pack_.text("pageable");
    }
    if (launch.grid[0] != 0) {
      add_dimensions("grid", launch.grid);
      add_dimensions("block", launch.block);
    }
    if (launch.host_func) key("node").text("host_func");
    if (!launch.description.empty()) {
      count_ += launch.description_pairs;
      pack_.raw(launch.description);
    }
  }

  uint32_t count() const { return count_; }
  const std::string& packed() const { return pack_.str(); }

 private:
  wire::Pack& key(std::string_view name) {
    ++count_;
    return pack_.text(name);
  }

  void add_gemm(const Launch& launch) {
    key("gemm").array(8);
    for (int64_t size : launch.gemm) pack_.integer(size);
    for (std::string_view type : launch.gemm_types) pack_.text(type);
    for (bool transposed : launch.gemm_trans) pack_.boolean(transposed);
  }

  void add_dimensions(std::string_view name, const uint32_t (&sizes)[3]) {
    key(name).array(3);
    for (uint32_t size : sizes) pack_.integer(size);
  }

  wire::Pack pack_;
  uint32_t count_ = 0;
};

// What describe() wrote for an op, kept so that an op's later launches can be defined without its inputs.
struct OpDescription {
  uint32_t pairs;
  std::string packed;
};

class SignatureTable {
 public:
  uint32_t find_or_define(OpScope* op, const Launch& launch) {
    uint64_t hash = hash_of(op, launch);
    std::lock_guard lock(mutex_);
    const OpDescription& description = describe(op);
    auto [slot, is_new] = ids_.emplace(hash, 0);
    if (is_new) slot->second = define(description, launch);
    return slot->second;
  }

 private:
  const OpDescription& describe(OpScope* op) {
    static const OpDescription no_op = {1, wire::Pack().text("op").text("").str()};
    if (!op || !op->describe) return no_op;
    auto [slot, is_new] = descriptions_.try_emplace(op->hash);
    if (is_new) {
      wire::Pack pack;
      op->describe(op, pack);
      slot->second = {op->pairs, pack.str()};
    }
    return slot->second;
  }

  static uint32_t define(const OpDescription& description, const Launch& launch) {
    uint32_t id = recorder::next_definition_id("kernel");
    LaunchPairs pairs(launch);
    wire::Pack pack;
    pack.map(2 + description.pairs + pairs.count()).text("t").text("kernel").text("id").integer(id);
    recorder::define(pack.raw(description.packed).raw(pairs.packed()).str());
    counters::signatures.add();
    activity::describe(id, launch);
    return id;
  }

  std::mutex mutex_;
  std::unordered_map<uint64_t, uint32_t> ids_;
  std::unordered_map<uint64_t, OpDescription> descriptions_;
};

SignatureTable& signatures() {
  static SignatureTable* table = new SignatureTable;  // never destroyed: used by exit handlers
  return *table;
}

// An op's cost goes to its first kernel. Copies and sets cost their own bytes, wherever in the op they stand: many ops
// zero a counter before their first kernel. A kernel that describes itself has its own cost.
bool is_later(OpScope* op, const Launch& launch) {
  return op && !launch.copy_kind && launch.description.empty() && std::exchange(op->costed, true);
}

graphs::NodeType node_type(const Launch& launch) {
  if (!launch.copy_kind) return graphs::NodeType::kernel;
  return std::string_view(launch.copy_kind) == "memset" ? graphs::NodeType::memset : graphs::NodeType::memcpy;
}

void record_kernel(StreamId stream, uint32_t signature, uint32_t number, uint8_t flags) {
  activity::Issue issue(stream, signature);
  recorder::record(wire::RecordKind::kernel, stream, signature, number, flags);
  counters::launches.add();
}

}  // namespace

void push_op(OpScope* scope) {
  scope->outer = innermost_op;
  innermost_op = scope;
}

void pop_op(OpScope* scope) { innermost_op = scope->outer; }

OpScope* current_op() { return innermost_op; }

uint32_t signature_of(OpScope* op, const Launch& launch) { return signatures().find_or_define(op, launch); }

void launch(StreamId stream, const Launch& launch) {
  if (!recorder::active() || recorder::is_observer()) return;
  OpScope* op = innermost_op;
  uint32_t number = op ? op->launches++ : 0;
  uint32_t signature = signature_of(launch.description.empty() ? op : nullptr, launch);
  if (op) op->stream = stream;
  recorder::advance(config().launch_ns);
  uint8_t flags = is_later(op, launch) ? wire::later_launch : 0;
  auto issue = [=](StreamId launched) { record_kernel(launched, signature, number, flags); };
  if (!captures::add(stream, node_type(launch), issue)) issue(stream);
}

}  // namespace phantora
