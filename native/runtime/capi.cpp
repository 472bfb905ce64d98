#include "phantora/capi.h"

#include <algorithm>
#include <string>

#include "phantora/capture.h"
#include "phantora/config.h"
#include "phantora/counters.h"
#include "phantora/device.h"
#include "phantora/host_groups.h"
#include "phantora/kernels.h"
#include "phantora/launch.h"
#include "phantora/recorder.h"
#include "phantora/streams.h"

using namespace phantora;

namespace {

// A record of the current device's default stream carries the device.
StreamId device_stream() { return streams::find(nullptr)->id; }

host_groups::Group host_group(const char* what, const int* ranks, int size) {
  std::string uid = what;
  for (int index = 0; index < size; ++index) uid += "," + std::to_string(ranks[index]);
  int index = static_cast<int>(std::find(ranks, ranks + size, config().rank) - ranks);
  return {uid, what, size, index, {ranks, ranks + size}};
}

}  // namespace

extern "C" {

int phantora_active(void) { return recorder::active(); }
int64_t phantora_now_ns(void) { return recorder::now_ns(); }
int64_t phantora_epoch_ns(void) { return config().epoch_ns; }
void phantora_advance_ns(int64_t ns) { recorder::advance(ns); }
void phantora_sleep_ns(int64_t ns) { recorder::sleep(ns); }

void phantora_push_op(PhantoraOpScope* scope) { push_op(reinterpret_cast<OpScope*>(scope)); }
void phantora_pop_op(PhantoraOpScope* scope) { pop_op(reinterpret_cast<OpScope*>(scope)); }

void phantora_mark_step(void* stream, int what, uint64_t optimizer) {
  StreamId id = streams::enter_or_fail(stream, "phantora_mark_step");
  auto issue = [=](StreamId launched) {
    recorder::record(wire::RecordKind::mark, launched, static_cast<uint64_t>(what), optimizer);
  };
  if (!captures::attach(id, issue)) issue(id);
}

void phantora_memory(uint64_t allocated_bytes, uint64_t reserved_bytes) {
  recorder::record(wire::RecordKind::memory, device_stream(), allocated_bytes, reserved_bytes);
}

int phantora_counter(const char* name, uint64_t* value) { return counters::read(name, value); }
int phantora_describe_kernel(const void* function, const char* text) { return kernels::describe(function, text); }
void phantora_outside(const char* what) { recorder::go_outside(what); }
uint64_t phantora_meet(const char* what, const int* ranks, int size) {
  return size < 2 ? 0 : recorder::begin_host_sync(host_groups::find_or_define(host_group(what, ranks, size)));
}
void phantora_met(uint64_t meeting) {
  if (meeting != 0) recorder::end_host_sync(meeting);
}
void phantora_flush(void) { recorder::flush(); }

}  // extern "C"
