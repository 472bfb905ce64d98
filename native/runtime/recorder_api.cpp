// The functions of phantora/recorder.h, over the one Recorder of the process.
#include "phantora/recorder.h"

#include "recorder_core.h"

namespace phantora {

using wire::Target;

namespace recorder {

bool active() { return Recorder::instance().active(); }
bool has_ended() { return Recorder::instance().has_ended(); }
int64_t now_ns() { return Recorder::instance().now_ns(); }
void advance(int64_t ns) { Recorder::instance().advance(ns); }
void charge_call() { Recorder::instance().charge_call(); }
void sleep(int64_t ns) { Recorder::instance().sleep(ns); }
bool is_observer() { return this_thread().role == Role::observer; }
void become_observer() { this_thread().role = Role::observer; }
bool is_main() { return this_thread().role == Role::main; }
uint64_t waits() { return Recorder::instance().waits(); }
void release_observers(StreamId stream) { Recorder::instance().release_observers(stream); }

namespace {

enum class Launching : uint8_t { one_by_one, first, later };
thread_local Launching launching = Launching::one_by_one;

uint8_t launch_flags(wire::RecordKind kind) {
  if (kind != wire::RecordKind::kernel && kind != wire::RecordKind::collective) return 0;
  if (launching == Launching::later) return wire::within_launch;
  if (launching == Launching::first) launching = Launching::later;
  return 0;
}

}  // namespace

OneLaunch::OneLaunch() { launching = Launching::first; }
OneLaunch::~OneLaunch() { launching = Launching::one_by_one; }

void record(wire::RecordKind kind, StreamId stream, uint64_t a, uint64_t b, uint8_t flags) {
  flags |= launch_flags(kind);
  Recorder::instance().record(kind, stream, a, b, flags);
}

RecordingId next_recording() { return Recorder::instance().next_recording(); }
void forget(RecordingId recording) { Recorder::instance().forget(recording); }
void define_stream(StreamId stream, int device, int priority) {
  Recorder::instance().define_stream(stream, device, priority);
}
void flush() { Recorder::instance().flush(); }

int64_t sync_stream(StreamId stream) { return Recorder::instance().sync(Target::stream, stream, 0); }
int64_t sync_recording(RecordingId recording) { return Recorder::instance().sync(Target::recording, 0, recording); }
int64_t sync_device(int device) { return Recorder::instance().sync(Target::device, static_cast<StreamId>(device), 0); }
bool query_stream(StreamId stream) { return Recorder::instance().query(Target::stream, stream, 0); }
bool query_recording(RecordingId recording) { return Recorder::instance().query(Target::recording, 0, recording); }
int64_t event_time(RecordingId recording) { return Recorder::instance().event_time(recording); }
std::vector<int64_t> event_times(const std::vector<RecordingId>& recordings) {
  return Recorder::instance().event_times(recordings);
}
uint64_t begin_host_sync(uint32_t host_group) { return Recorder::instance().begin_host_sync(host_group); }
int64_t end_host_sync(uint64_t request) { return Recorder::instance().end_host_sync(request); }
int64_t host_sync(uint32_t host_group) { return end_host_sync(begin_host_sync(host_group)); }

uint32_t next_definition_id(std::string_view table) { return Recorder::instance().next_definition_id(table); }
void define(const std::string& packed) { Recorder::instance().define(packed); }
void send_data(std::string_view payload) { Recorder::instance().send_data(payload); }
void on_data(std::function<void(std::string_view)> handler) { Recorder::instance().on_data(std::move(handler)); }
void farewell(std::function<void(std::function<void(std::string_view, std::string_view)>)> contribute) {
  Recorder::instance().farewell(std::move(contribute));
}

void go_outside(std::string_view what) { Recorder::instance().go_outside(what); }

void declare_guess(const std::string& what) { Recorder::instance().declare_guess(what); }

}  // namespace recorder

}  // namespace phantora
