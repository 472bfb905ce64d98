// Stream capture: what is given to a stream becomes nodes of a graph instead.
//
// A stream that is being captured has *dependencies*: the nodes that the next one will depend on. A call that would
// issue something asks add() first; the computation of values that follows goes to the node just made (attach()).
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "phantora/export.h"
#include "phantora/graph.h"

namespace phantora {
namespace captures PHANTORA_EXPORT {

// cudaStreamCaptureMode: whose unsafe calls (cudaMalloc, say) a capture forbids.
enum class Mode : int { global = 0, thread_local_calls = 1, relaxed = 2 };

// Numbers of cudaError_t.
enum class Error : int {
  none = 0,
  illegal_state = 401,
  unsupported = 900,
  invalidated = 901,
  merge = 902,
  unmatched = 903,
  unjoined = 904,
  isolation = 905,
  captured_event = 907,
  wrong_thread = 908,
};

struct Info {
  uint64_t id = 0;
  bool valid = true;
  graphs::Graph* graph = nullptr;
  bool is_new_graph = true;  // not one that there was
  std::vector<graphs::Node*> dependencies;
};

// What a CUDA event stands for that was recorded on a stream being captured.
struct Point {
  uint64_t capture = 0;
  std::vector<graphs::Node*> nodes;
};

bool any();  // is some stream being captured?
bool active(StreamId stream);
std::optional<Info> info(StreamId stream);

// False, and nothing is done, if the stream is not being captured.
bool add(StreamId stream, graphs::NodeType type, graphs::Issue issue);
bool add(StreamId stream, std::shared_ptr<const graphs::Graph> child);
bool add(StreamId stream, std::shared_ptr<const graphs::Conditional> conditional);
bool allocate(StreamId stream, graph_memory::AllocationPtr memory);
bool free(StreamId stream, graph_memory::AllocationPtr memory);
bool attach(StreamId stream, graphs::Issue issue);

// Into a new graph (`into` null), or behind nodes of one that there is.
Error begin(StreamId stream, int device, Mode mode, graphs::Graph* into = nullptr,
            std::vector<graphs::Node*> dependencies = {});
// A new graph is the caller's from now on; if the capture failed it is destroyed, and none is returned.
Error end(StreamId stream, graphs::Graph** graph);
void abandon(StreamId stream);  // it is being destroyed
Error set_dependencies(StreamId stream, std::vector<graphs::Node*> nodes, bool in_addition);

std::shared_ptr<const Point> point(StreamId stream);  // null if the stream is not being captured
// Later nodes of the stream depend on the point's; the stream joins the capture if it is in none.
Error wait(StreamId stream, int device, const Point& point);

// A call that cannot be captured: false if none of these captures forbids it; else they are no longer valid.
bool forbids_wait(StreamId stream);  // a host wait for, or a query of, that stream
bool forbids_unsafe();               // a call of this thread that others' work may have to wait for
Mode exchange_mode(Mode mode);       // of the calling thread

}  // namespace captures PHANTORA_EXPORT
}  // namespace phantora
