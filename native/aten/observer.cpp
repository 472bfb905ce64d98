#include "observer.h"

#include <ATen/record_function.h>

#include <string_view>

#include "allocator_blocks.h"
#include "current_stream.h"
#include "device_memory.h"
#include "optimizer.h"
#include "overrides.h"
#include "phantora/capi.h"
#include "phantora/config.h"
#include "phantora/recorder.h"
#include "phantora/values.h"

namespace phantora::aten {
namespace {

constexpr std::string_view step_prefix = "Optimizer.step#";
constexpr int step_ended = 1, step_began = 2;

// How deep the calling thread is in dispatched ops, and in optimizer steps (one may wrap another).
thread_local int op_depth = 0;
thread_local int step_depth = 0;
thread_local uint64_t optimizer = 0;  // of the outermost step

bool is_step(const at::RecordFunction& range) {
  return range.scope() == at::RecordScope::USER_SCOPE && std::string_view(range.name()).starts_with(step_prefix);
}

void mark_step(int what) {
  if (is_device_in_use()) phantora_mark_step(current_stream_handle(), what, optimizer);
}

// An op costs the host its dispatch once: what it calls within is part of that.
std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& range) {
  if (range.scope() == at::RecordScope::FUNCTION) {
    override_new_operators();
    follow_allocator();
    if (op_depth++ == 0) recorder::advance(config().dispatch_ns);
  } else if (is_step(range) && step_depth++ == 0) {
    optimizer = stepping_optimizer();
    mark_step(step_began);
  }
  return nullptr;
}

void end(const at::RecordFunction& range, at::ObserverContext*) {
  if (range.scope() == at::RecordScope::FUNCTION) {
    --op_depth;
  } else if (is_step(range) && --step_depth == 0) {
    mark_step(step_ended);
    values::note_progress();
    record_memory();
  }
}

}  // namespace

void observe() {
  at::addGlobalCallback(
      at::RecordFunctionCallback(&begin, &end).scopes({at::RecordScope::FUNCTION, at::RecordScope::USER_SCOPE}));
}

}  // namespace phantora::aten
