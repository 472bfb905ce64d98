// Stream capture: phantora/capture.h has what it does.
#include <vector>

#include "cudart/error.h"
#include "cudart/graph.h"
#include "phantora/streams.h"

namespace phantora::cudart {

namespace {

enum CaptureStatus : int { none = 0, active = 1, invalidated = 2 };
enum class Update : unsigned { add = 0, set = 1 };

constexpr int last_mode = static_cast<int>(captures::Mode::relaxed);

int status_of(const std::optional<captures::Info>& capture) {
  return !capture ? CaptureStatus::none : capture->valid ? CaptureStatus::active : CaptureStatus::invalidated;
}

}  // namespace

extern "C" {

Status cudaStreamBeginCaptureToGraph(Stream stream, GraphHandle graph, const NodeHandle* dependencies, const GraphEdge*,
                                     size_t count, int mode) {
  std::optional<streams::Info> info = streams::find(stream);
  graphs::Graph* into = graphs::find_graph(graph);
  if (!info || mode < 0 || mode > last_mode || (graph && !into)) return done(Status::invalid_value);
  bool legacy = stream == nullptr || stream == streams::legacy();
  if (legacy) return done(Status::stream_capture_unsupported);
  return done(
      captures::begin(info->id, info->device, static_cast<captures::Mode>(mode), into, nodes_of(dependencies, count)));
}

Status cudaStreamBeginCapture(Stream stream, int mode) {
  return cudaStreamBeginCaptureToGraph(stream, nullptr, nullptr, nullptr, 0, mode);
}

// Whoever captures into a graph of theirs need not be told which.
Status cudaStreamEndCapture(Stream stream, GraphHandle* graph) {
  std::optional<streams::Info> info = streams::find(stream);
  if (!info) return done(Status::invalid_value);
  std::optional<captures::Info> capture = captures::info(info->id);
  if (!graph && (!capture || capture->is_new_graph)) return done(Status::invalid_value);
  graphs::Graph* captured = nullptr;
  captures::Error error = captures::end(info->id, &captured);
  if (graph) *graph = captured;
  return done(error);
}

Status cudaStreamIsCapturing(Stream stream, int* status) {
  std::optional<streams::Info> info = streams::find(stream);
  if (!info) return done(Status::invalid_resource_handle);
  *status = status_of(captures::info(info->id));
  return Status::success;
}

// The dependencies stay valid until the thread asks again.
Status cudaStreamGetCaptureInfo(Stream stream, int* status, unsigned long long* id, GraphHandle* graph,
                                const NodeHandle** nodes, const GraphEdge** edges, size_t* count) {
  thread_local std::vector<NodeHandle> handles;
  thread_local std::vector<GraphEdge> plain;
  std::optional<streams::Info> info = streams::find(stream);
  if (!info || !status) return done(Status::invalid_value);
  std::optional<captures::Info> capture = captures::info(info->id);
  *status = status_of(capture);
  if (!capture || !capture->valid) return Status::success;
  handles.assign(capture->dependencies.begin(), capture->dependencies.end());
  plain.assign(handles.size(), GraphEdge{});
  if (id) *id = capture->id;
  if (graph) *graph = capture->graph;
  if (nodes) *nodes = handles.data();
  if (edges) *edges = plain.data();
  if (count) *count = handles.size();
  return Status::success;
}

Status cudaStreamUpdateCaptureDependencies(Stream stream, NodeHandle* nodes, const GraphEdge*, size_t count,
                                           unsigned flags) {
  std::optional<streams::Info> info = streams::find(stream);
  if (!info || flags > static_cast<unsigned>(Update::set)) return done(Status::invalid_value);
  bool in_addition = static_cast<Update>(flags) == Update::add;
  return done(captures::set_dependencies(info->id, nodes_of(nodes, count), in_addition));
}

Status cudaThreadExchangeStreamCaptureMode(int* mode) {
  if (!mode || *mode < 0 || *mode > last_mode) return done(Status::invalid_value);
  *mode = static_cast<int>(captures::exchange_mode(static_cast<captures::Mode>(*mode)));
  return Status::success;
}

}  // extern "C"

}  // namespace phantora::cudart
