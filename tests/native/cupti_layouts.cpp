// Our records of activity against NVIDIA's headers, where these lie: compiled, never run.
#include "cupti/types.h"

#include <cupti.h>

#include "phantora/activity.h"

namespace cupti = phantora::cupti;
namespace activity = phantora::activity;

#define SAME_NUMBER(ours, theirs) static_assert(static_cast<long>(ours) == static_cast<long>(theirs))
#define SAME_SIZE(ours, theirs) static_assert(sizeof(ours) == sizeof(theirs) && alignof(ours) == alignof(theirs))
#define SAME_FIELD(ours, our_field, theirs, their_field) \
  static_assert(offsetof(ours, our_field) == offsetof(theirs, their_field))

SAME_NUMBER(cupti::Result::invalid_parameter, CUPTI_ERROR_INVALID_PARAMETER);
SAME_NUMBER(cupti::Result::max_limit_reached, CUPTI_ERROR_MAX_LIMIT_REACHED);
SAME_NUMBER(cupti::Result::queue_empty, CUPTI_ERROR_QUEUE_EMPTY);
SAME_NUMBER(cupti::Kind::memcpy, CUPTI_ACTIVITY_KIND_MEMCPY);
SAME_NUMBER(cupti::Kind::memset, CUPTI_ACTIVITY_KIND_MEMSET);
SAME_NUMBER(cupti::Kind::kernel, CUPTI_ACTIVITY_KIND_KERNEL);
SAME_NUMBER(cupti::Kind::runtime, CUPTI_ACTIVITY_KIND_RUNTIME);
SAME_NUMBER(cupti::Kind::concurrent_kernel, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
SAME_NUMBER(cupti::Kind::external_correlation, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
SAME_NUMBER(cupti::CopyKind::to_device, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD);
SAME_NUMBER(cupti::CopyKind::to_host, CUPTI_ACTIVITY_MEMCPY_KIND_DTOH);
SAME_NUMBER(cupti::CopyKind::on_device, CUPTI_ACTIVITY_MEMCPY_KIND_DTOD);
SAME_NUMBER(cupti::CopyKind::on_host, CUPTI_ACTIVITY_MEMCPY_KIND_HTOH);
SAME_NUMBER(cupti::CopyKind::between_devices, CUPTI_ACTIVITY_MEMCPY_KIND_PTOP);
SAME_NUMBER(cupti::MemoryKind::pageable, CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE);
SAME_NUMBER(cupti::MemoryKind::pinned, CUPTI_ACTIVITY_MEMORY_KIND_PINNED);
SAME_NUMBER(cupti::MemoryKind::device, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE);
SAME_NUMBER(activity::Api::memcpy_async, CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020);
SAME_NUMBER(activity::Api::memset_async, CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020);
SAME_NUMBER(activity::Api::stream_synchronize, CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_v3020);
SAME_NUMBER(activity::Api::event_synchronize, CUPTI_RUNTIME_TRACE_CBID_cudaEventSynchronize_v3020);
SAME_NUMBER(activity::Api::device_synchronize, CUPTI_RUNTIME_TRACE_CBID_cudaDeviceSynchronize_v3020);
SAME_NUMBER(activity::Api::launch_kernel, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000);
SAME_NUMBER(activity::Api::graph_launch, CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000);

SAME_SIZE(cupti::KernelRecord, CUpti_ActivityKernel9);
SAME_FIELD(cupti::KernelRecord, start, CUpti_ActivityKernel9, start);
SAME_FIELD(cupti::KernelRecord, device, CUpti_ActivityKernel9, deviceId);
SAME_FIELD(cupti::KernelRecord, stream, CUpti_ActivityKernel9, streamId);
SAME_FIELD(cupti::KernelRecord, grid, CUpti_ActivityKernel9, gridX);
SAME_FIELD(cupti::KernelRecord, block, CUpti_ActivityKernel9, blockX);
SAME_FIELD(cupti::KernelRecord, correlation, CUpti_ActivityKernel9, correlationId);
SAME_FIELD(cupti::KernelRecord, name, CUpti_ActivityKernel9, name);
SAME_FIELD(cupti::KernelRecord, graph_node, CUpti_ActivityKernel9, graphNodeId);
SAME_FIELD(cupti::KernelRecord, cluster, CUpti_ActivityKernel9, clusterX);
SAME_FIELD(cupti::KernelRecord, max_cluster, CUpti_ActivityKernel9, maxPotentialClusterSize);
SAME_SIZE(cupti::MemcpyRecord, CUpti_ActivityMemcpy5);
SAME_FIELD(cupti::MemcpyRecord, destination, CUpti_ActivityMemcpy5, dstKind);
SAME_FIELD(cupti::MemcpyRecord, bytes, CUpti_ActivityMemcpy5, bytes);
SAME_FIELD(cupti::MemcpyRecord, end, CUpti_ActivityMemcpy5, end);
SAME_FIELD(cupti::MemcpyRecord, correlation, CUpti_ActivityMemcpy5, correlationId);
SAME_SIZE(cupti::MemsetRecord, CUpti_ActivityMemset4);
SAME_FIELD(cupti::MemsetRecord, correlation, CUpti_ActivityMemset4, correlationId);
SAME_FIELD(cupti::MemsetRecord, memory, CUpti_ActivityMemset4, memoryKind);
SAME_SIZE(cupti::ApiRecord, CUpti_ActivityAPI);
SAME_FIELD(cupti::ApiRecord, thread, CUpti_ActivityAPI, threadId);
SAME_FIELD(cupti::ApiRecord, correlation, CUpti_ActivityAPI, correlationId);
SAME_SIZE(cupti::ExternalRecord, CUpti_ActivityExternalCorrelation);
SAME_FIELD(cupti::ExternalRecord, external, CUpti_ActivityExternalCorrelation, externalId);
SAME_FIELD(cupti::ExternalRecord, correlation, CUpti_ActivityExternalCorrelation, correlationId);
