// Compile-time: the shim's types are those of NVIDIA's header.
#include <nccl.h>

#include <cstddef>

#include "nccl/types.h"

namespace mine = phantora::nccl;

#define SAME_VALUE(ours, theirs) static_assert(static_cast<int>(ours) == static_cast<int>(theirs))
#define SAME_FIELD(ours, theirs) static_assert(offsetof(mine::Config, ours) == offsetof(ncclConfig_t, theirs))

static_assert(mine::version_code == NCCL_VERSION_CODE);
static_assert(sizeof(mine::Result) == sizeof(ncclResult_t));
static_assert(sizeof(mine::DataType) == sizeof(ncclDataType_t));
static_assert(sizeof(mine::RedOp) == sizeof(ncclRedOp_t));
static_assert(sizeof(mine::ScalarResidence) == sizeof(ncclScalarResidence_t));
static_assert(sizeof(mine::UniqueId) == sizeof(ncclUniqueId));
static_assert(sizeof(mine::Config) == sizeof(ncclConfig_t));

SAME_VALUE(mine::Result::success, ncclSuccess);
SAME_VALUE(mine::Result::unhandled_cuda_error, ncclUnhandledCudaError);
SAME_VALUE(mine::Result::system_error, ncclSystemError);
SAME_VALUE(mine::Result::internal_error, ncclInternalError);
SAME_VALUE(mine::Result::invalid_argument, ncclInvalidArgument);
SAME_VALUE(mine::Result::invalid_usage, ncclInvalidUsage);
SAME_VALUE(mine::Result::remote_error, ncclRemoteError);
SAME_VALUE(mine::Result::in_progress, ncclInProgress);
SAME_VALUE(mine::Result::timeout, ncclTimeout);

SAME_VALUE(mine::DataType::int8, ncclInt8);
SAME_VALUE(mine::DataType::uint8, ncclUint8);
SAME_VALUE(mine::DataType::int32, ncclInt32);
SAME_VALUE(mine::DataType::uint32, ncclUint32);
SAME_VALUE(mine::DataType::int64, ncclInt64);
SAME_VALUE(mine::DataType::uint64, ncclUint64);
SAME_VALUE(mine::DataType::float16, ncclFloat16);
SAME_VALUE(mine::DataType::float32, ncclFloat32);
SAME_VALUE(mine::DataType::float64, ncclFloat64);
SAME_VALUE(mine::DataType::bfloat16, ncclBfloat16);
SAME_VALUE(mine::DataType::float8_e4m3, ncclFloat8e4m3);
SAME_VALUE(mine::DataType::float8_e5m2, ncclFloat8e5m2);
SAME_VALUE(mine::data_type_count, ncclNumTypes);

SAME_VALUE(mine::RedOp::sum, ncclSum);
SAME_VALUE(mine::RedOp::product, ncclProd);
SAME_VALUE(mine::RedOp::maximum, ncclMax);
SAME_VALUE(mine::RedOp::minimum, ncclMin);
SAME_VALUE(mine::RedOp::average, ncclAvg);
SAME_VALUE(mine::RedOp::custom, ncclNumOps);
SAME_VALUE(mine::ScalarResidence::device, ncclScalarDevice);
SAME_VALUE(mine::ScalarResidence::host_immediate, ncclScalarHostImmediate);
SAME_VALUE(mine::MemoryStatistic::suspendable, ncclStatGpuMemSuspend);
SAME_VALUE(mine::MemoryStatistic::suspended, ncclStatGpuMemSuspended);
SAME_VALUE(mine::MemoryStatistic::persistent, ncclStatGpuMemPersist);
SAME_VALUE(mine::MemoryStatistic::total, ncclStatGpuMemTotal);
SAME_VALUE(mine::no_color, NCCL_SPLIT_NOCOLOR);
SAME_VALUE(mine::undefined_int, NCCL_CONFIG_UNDEF_INT);
static_assert(mine::config_magic == NCCL_API_MAGIC);

SAME_FIELD(size, size);
SAME_FIELD(magic, magic);
SAME_FIELD(version, version);
SAME_FIELD(blocking, blocking);
SAME_FIELD(cga_cluster_size, cgaClusterSize);
SAME_FIELD(min_ctas, minCTAs);
SAME_FIELD(max_ctas, maxCTAs);
SAME_FIELD(net_name, netName);
SAME_FIELD(split_share, splitShare);
SAME_FIELD(traffic_class, trafficClass);
SAME_FIELD(comm_name, commName);
SAME_FIELD(collnet_enable, collnetEnable);
SAME_FIELD(cta_policy, CTAPolicy);
SAME_FIELD(shrink_share, shrinkShare);
SAME_FIELD(nvls_ctas, nvlsCTAs);
SAME_FIELD(channels_per_net_peer, nChannelsPerNetPeer);
SAME_FIELD(nvlink_centric_sched, nvlinkCentricSched);
SAME_FIELD(graph_usage_mode, graphUsageMode);
SAME_FIELD(rma_contexts, numRmaCtx);
SAME_FIELD(max_p2p_peers, maxP2pPeers);
SAME_FIELD(graph_stream_ordering, graphStreamOrdering);
