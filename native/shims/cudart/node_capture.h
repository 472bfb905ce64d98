// How a single node is added to a graph: as what the call that it stands for makes on a captured stream.
#pragma once
#include "cudart/error.h"
#include "cudart/graph.h"
#include "phantora/capture.h"
#include "phantora/device.h"
#include "phantora/streams.h"

namespace phantora::cudart {

// A stream that nothing runs on.
class Scratch {
 public:
  Scratch() : handle_(streams::create(device::current(), true, 0)), info_(*streams::find(handle_)) {}
  ~Scratch() { streams::destroy(handle_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  Stream handle() const { return handle_; }
  StreamId id() const { return info_.id; }

 private:
  Stream handle_;
  streams::Info info_;
};

// `call` is to give one piece of work to the stream of a Scratch. Nothing to do is no node, and an error.
template <typename Call>
Status add(NodeHandle* out, GraphHandle handle, const NodeHandle* dependencies, size_t count, Call call) {
  graphs::Graph* graph = graphs::find_graph(handle);
  if (!out || !graph) return done(Status::invalid_value);
  Scratch scratch;
  captures::Error begun =
      captures::begin(scratch.id(), device::current(), captures::Mode::relaxed, graph, nodes_of(dependencies, count));
  if (begun != captures::Error::none) return done(begun);
  size_t nodes = graph->nodes.size();
  Status status = call(scratch);
  if (status == Status::success && graph->nodes.size() == nodes) status = done(Status::invalid_value);
  if (status == Status::success) *out = captures::info(scratch.id())->dependencies.front();
  captures::end(scratch.id(), &graph);
  return status;
}

}  // namespace phantora::cudart
