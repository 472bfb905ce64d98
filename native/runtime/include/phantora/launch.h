// What becomes a node on a stream, and which op owns it.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "phantora/export.h"
#include "phantora/recorder.h"

namespace phantora PHANTORA_EXPORT {

// The innermost op open on a thread. The ATen hook pushes one on its stack for each dispatched op that may launch.
// `describe` appends the signature's keys "op", "tensors", "scalars" (pairs: see Pack) for the inputs as they were at
// the op's start; it is called at most once, at the op's first launch, and `hash` must identify what it would write.
struct OpScope {
  OpScope* outer = nullptr;
  uint64_t hash = 0;
  uint32_t pairs = 0;  // how many pairs describe() appends
  void (*describe)(const OpScope*, wire::Pack&) = nullptr;
  uint32_t launches = 0;  // so far, over all streams
  bool costed = false;    // whether one of these carries the op's cost: a kernel, never a copy or set
  uint32_t carried = 0;   // of these, copies and sets that values::copy, set took on, and signals
  bool computed = false;  // what the others write gets its values when the op has ended
  StreamId stream = 0;    // of the latest launch
  const char* name = "";  // for messages; lives as long as the process

  // Its kernel may read what another one of it has written: that is no value that a script sees.
  bool reads_its_own() const { return computed && launches > carried; }
};

void push_op(OpScope* scope);
void pop_op(OpScope* scope);
OpScope* current_op();

// What a kernel takes of an SM, for profilers. 0: none, or not known.
struct Resources {
  int registers = 0;  // of a thread
  int static_shared_bytes = 0;
  int dynamic_shared_bytes = 0;
};

// What the shim knows of a launch. Only the fields that apply are set.
struct Launch {
  std::string_view kernel;         // kernel symbol or library call
  int64_t gemm[4] = {0, 0, 0, 0};  // m, n, k, batch (batch 0: not a GEMM)
  std::string_view gemm_types[2];  // dtype of A and of D
  bool gemm_trans[2] = {false, false};
  const char* copy_kind = nullptr;  // "h2d" …
  uint64_t copy_bytes = 0;
  bool copy_is_pageable = false;  // its host side is: the driver copies through memory of its own
  uint32_t grid[3] = {0, 0, 0};
  uint32_t block[3] = {0, 0, 0};
  Resources resources;
  bool host_func = false;
  std::string_view description;  // pairs of the signature that the kernel itself gives, instead of the op's
  uint32_t description_pairs = 0;
};

// The id of the signature, which is defined when it is first met (op scope + launch; described once).
uint32_t signature_of(OpScope* op, const Launch& launch);

// Makes the node: finds or defines the signature (op scope + launch; hashed, looked up in a table, described once),
// advances the lane by the launch cost and records KERNEL, or makes a node of the graph that is being captured.
void launch(StreamId stream, const Launch& launch);

}  // namespace phantora PHANTORA_EXPORT
