// Nodes of graphs that allocate and free memory, and what a device's graphs hold.
#include "phantora/graph_memory.h"

#include "cudart/error.h"
#include "cudart/graph.h"
#include "cudart/node_capture.h"

namespace phantora::cudart {

namespace {

using graph_memory::Attribute;
using graphs::Node;
using graphs::NodeType;

bool is_device(int device) { return device >= 0 && device < device::count(); }
bool is_attribute(int attribute) { return attribute >= 0 && attribute <= static_cast<int>(Attribute::reserved_high); }

}  // namespace

extern "C" {

Status cudaGraphAddMemAllocNode(NodeHandle* node, GraphHandle graph, const NodeHandle* dependencies, size_t count,
                                MemoryAllocParameters* parameters) {
  if (!parameters || parameters->bytes == 0 || !is_device(parameters->pool.location)) {
    return done(Status::invalid_value);
  }
  auto memory = graph_memory::Allocation::make(parameters->pool.location, parameters->bytes);
  Status status = add(node, graph, dependencies, count, [&memory](Scratch& scratch) {
    captures::allocate(scratch.id(), memory);
    return Status::success;
  });
  if (status == Status::success) parameters->pointer = memory->pointer();
  return status;
}

Status cudaGraphAddMemFreeNode(NodeHandle* node, GraphHandle graph, const NodeHandle* dependencies, size_t count,
                               void* pointer) {
  auto memory = graph_memory::find(pointer);
  if (!memory) return done(Status::invalid_value);
  return add(node, graph, dependencies, count, [&memory](Scratch& scratch) {
    captures::free(scratch.id(), memory);
    return Status::success;
  });
}

Status cudaGraphMemAllocNodeGetParams(NodeHandle handle, MemoryAllocParameters* parameters) {
  auto node = static_cast<Node*>(handle);
  if (!node || !parameters || node->type != NodeType::memory_alloc) return done(Status::invalid_value);
  *parameters = {};
  parameters->pool.allocation_type = memory_is_pinned;
  parameters->pool.location_type = location_is_device;
  parameters->pool.location = node->memory->device();
  parameters->bytes = node->memory->bytes();
  parameters->pointer = node->memory->pointer();
  return Status::success;
}

Status cudaGraphMemFreeNodeGetParams(NodeHandle handle, void* pointer) {
  auto node = static_cast<Node*>(handle);
  if (!node || !pointer || node->type != NodeType::memory_free) return done(Status::invalid_value);
  *static_cast<void**>(pointer) = node->memory->pointer();
  return Status::success;
}

Status cudaDeviceGetGraphMemAttribute(int device, int attribute, void* value) {
  if (!is_device(device)) return done(Status::invalid_device);
  if (!value || !is_attribute(attribute)) return done(Status::invalid_value);
  *static_cast<uint64_t*>(value) = graph_memory::get(device, Attribute(attribute));
  return Status::success;
}

// The highs can be set, to what is now.
Status cudaDeviceSetGraphMemAttribute(int device, int attribute, void* value) {
  if (!is_device(device)) return done(Status::invalid_device);
  bool is_high = Attribute(attribute) == Attribute::used_high || Attribute(attribute) == Attribute::reserved_high;
  if (!value || !is_high || *static_cast<uint64_t*>(value) != 0) return done(Status::invalid_value);
  graph_memory::reset_high(device, Attribute(attribute));
  return Status::success;
}

Status cudaDeviceGraphMemTrim(int device) {
  if (!is_device(device)) return done(Status::invalid_device);
  graph_memory::trim(device);
  return Status::success;
}

}  // extern "C"

}  // namespace phantora::cudart
