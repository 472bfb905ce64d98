// The rank's side of the protocol: lanes (host clocks), records and requests. Thread-safe.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "phantora/export.h"
#include "phantora/wire.h"

namespace phantora PHANTORA_EXPORT {

using StreamId = uint32_t;
using RecordingId = uint64_t;

namespace recorder {

// False in processes that are not ranks: forked children, tools without PHANTORA_RUN_DIR. Nothing is recorded there.
bool active();
// The process is ending: its handlers have run, the simulator has heard BYE, and what is done on the GPU no longer
// counts.
bool has_ended();

// --- clock of the calling thread's lane. Main and autograd threads ("pt_autograd_*") share lane 0; every other thread
// gets its own lane at its first call, starting at lane 0's time at the thread's creation. PyTorch's NCCL watchdog and
// heartbeat threads ("pt_nccl_*") have no lane: nothing they do is recorded (see is_observer()), and to them an event
// is complete once lane 0 has waited for it.
int64_t now_ns();
void advance(
    int64_t ns);     // modelled host work; a no-op under the other policies (`measured` takes the thread's CPU time)
void charge_call();  // the modelled cost of a CUDA call that issues nothing by itself (config().call_ns)
void sleep(int64_t ns);  // time.sleep: moves the clock under every policy
bool is_main();          // of lane 0
uint64_t waits();        // how often lane 0 has waited for the device
bool is_observer();
void become_observer();  // for the runtime's own threads
// To observers, all that was issued on that stream until now is done: its communicator ends, and they wait for its
// work.
void release_observers(StreamId stream);

// --- records. The issue time is the lane's clock. Buffered; a flusher thread sends within about 1 ms of real time.
void record(wire::RecordKind kind, StreamId stream, uint64_t a = 0, uint64_t b = 0, uint8_t flags = 0);

// While one lives, what this thread issues is one launch to the host, as a graph is: only the first kernel or
// collective takes a place in a launch queue.
class OneLaunch {
 public:
  OneLaunch();
  ~OneLaunch();
  OneLaunch(const OneLaunch&) = delete;
  OneLaunch& operator=(const OneLaunch&) = delete;
};

// A fresh id for EVENT_RECORD. After record(event_record, stream, id) it can be waited for; until forget() it is
// remembered.
RecordingId next_recording();
void forget(RecordingId recording);
// Names a stream before its first record. `device` is a physical one (device.h), here and in sync_device. Ids are the
// caller's, dense from 0 (streams.h gives them).
void define_stream(StreamId stream, int device, int priority);

void flush();  // sends what is buffered

// --- blocking requests: send what is buffered, wait for the reply, move the lane's clock where the record blocks.
int64_t sync_stream(StreamId stream);
int64_t sync_recording(RecordingId recording);
int64_t sync_device(int device);
bool query_stream(StreamId stream);
bool query_recording(RecordingId recording);
int64_t event_time(RecordingId recording);
std::vector<int64_t> event_times(const std::vector<RecordingId>& recordings);  // all in one exchange
int64_t host_sync(uint32_t host_group);
// The same in two steps; the thread calls nothing else of the recorder's in between.
uint64_t begin_host_sync(uint32_t host_group);
int64_t end_host_sync(uint64_t request);

// --- definitions. `packed` is the msgpack map of docs/protocol.md with its own id.
uint32_t next_definition_id(
    std::string_view table);  // dense from 1, per table: "kernel", "comm", "collective", "host_group"
void define(const std::string& packed);

// Small NCCL values. `on_data` is called on the reader thread for each DATA frame (payload after the frame header).
void send_data(std::string_view payload);
void on_data(std::function<void(std::string_view payload)> handler);

// Adds `key: value` (packed msgpack) to the BYE frame; called from exit handlers before the runtime's own.
void farewell(std::function<void(std::function<void(std::string_view key, std::string_view packed)>)> contribute);

// From now on the main thread waits for `what`, which only another process can bring and which no record tells of;
// empty: it has come. For diagnoses. Other threads are not asked about.
void go_outside(std::string_view what);

// A part of the result that is guessed, or that is not emulated in full: listed in the report. Said once for each text.
void declare_guess(const std::string& what);

}  // namespace recorder

// Prints "phantora: <what>\n  hint: <hint>\n" for this rank and ends the process with code 70.
[[noreturn]] void fail(const std::string& what, const std::string& hint);

// Where another rank has said why.
[[noreturn]] void end_without_a_word();

// An unsupported function: names itself and its library, then fail().
extern "C" [[noreturn]] void phantora_unsupported(const char* library, const char* function);

}  // namespace phantora PHANTORA_EXPORT
