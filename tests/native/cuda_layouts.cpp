// Our declarations against NVIDIA's headers, where these lie: compiled, never run.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include "cudart/types.h"
#include "driver/types.h"
#include "phantora/graph.h"
#include "phantora/ipc.h"
#include "phantora/virtual_memory.h"

namespace cudart = phantora::cudart;
namespace driver = phantora::driver;
namespace graphs = phantora::graphs;

#define SAME_NUMBER(ours, theirs) static_assert(static_cast<long>(ours) == static_cast<long>(theirs))
#define SAME_SIZE(ours, theirs) static_assert(sizeof(ours) == sizeof(theirs) && alignof(ours) == alignof(theirs))
#define SAME_FIELD(ours, our_field, theirs, their_field)                      \
  static_assert(offsetof(ours, our_field) == offsetof(theirs, their_field) && \
                sizeof(ours::our_field) == sizeof(theirs::their_field))

SAME_NUMBER(cudart::Status::invalid_value, cudaErrorInvalidValue);
SAME_NUMBER(cudart::Status::memory_allocation, cudaErrorMemoryAllocation);
SAME_NUMBER(cudart::Status::cudart_unloading, cudaErrorCudartUnloading);
SAME_NUMBER(cudart::Status::invalid_configuration, cudaErrorInvalidConfiguration);
SAME_NUMBER(cudart::Status::invalid_symbol, cudaErrorInvalidSymbol);
SAME_NUMBER(cudart::Status::invalid_memcpy_direction, cudaErrorInvalidMemcpyDirection);
SAME_NUMBER(cudart::Status::invalid_device_function, cudaErrorInvalidDeviceFunction);
SAME_NUMBER(cudart::Status::invalid_device, cudaErrorInvalidDevice);
SAME_NUMBER(cudart::Status::device_uninitialized, cudaErrorDeviceUninitialized);
SAME_NUMBER(cudart::Status::unsupported_limit, cudaErrorUnsupportedLimit);
SAME_NUMBER(cudart::Status::invalid_resource_handle, cudaErrorInvalidResourceHandle);
SAME_NUMBER(cudart::Status::symbol_not_found, cudaErrorSymbolNotFound);
SAME_NUMBER(cudart::Status::not_ready, cudaErrorNotReady);
SAME_NUMBER(cudart::Status::peer_access_already_enabled, cudaErrorPeerAccessAlreadyEnabled);
SAME_NUMBER(cudart::Status::peer_access_not_enabled, cudaErrorPeerAccessNotEnabled);
SAME_NUMBER(cudart::Status::host_memory_already_registered, cudaErrorHostMemoryAlreadyRegistered);
SAME_NUMBER(cudart::Status::host_memory_not_registered, cudaErrorHostMemoryNotRegistered);
SAME_NUMBER(cudart::Status::not_supported, cudaErrorNotSupported);
SAME_NUMBER(cudart::Status::illegal_state, cudaErrorIllegalState);
SAME_NUMBER(cudart::Status::stream_capture_unsupported, cudaErrorStreamCaptureUnsupported);
SAME_NUMBER(cudart::Status::stream_capture_invalidated, cudaErrorStreamCaptureInvalidated);
SAME_NUMBER(cudart::Status::stream_capture_merge, cudaErrorStreamCaptureMerge);
SAME_NUMBER(cudart::Status::stream_capture_unmatched, cudaErrorStreamCaptureUnmatched);
SAME_NUMBER(cudart::Status::stream_capture_unjoined, cudaErrorStreamCaptureUnjoined);
SAME_NUMBER(cudart::Status::stream_capture_isolation, cudaErrorStreamCaptureIsolation);
SAME_NUMBER(cudart::Status::captured_event, cudaErrorCapturedEvent);
SAME_NUMBER(cudart::Status::stream_capture_wrong_thread, cudaErrorStreamCaptureWrongThread);
SAME_NUMBER(cudart::Status::graph_update_failure, cudaErrorGraphExecUpdateFailure);
SAME_NUMBER(cudart::event_external, cudaEventRecordExternal);
SAME_NUMBER(cudart::event_external, cudaEventWaitExternal);

SAME_NUMBER(cudart::CopyKind::host_to_device, cudaMemcpyHostToDevice);
SAME_NUMBER(cudart::CopyKind::device_to_host, cudaMemcpyDeviceToHost);
SAME_NUMBER(cudart::CopyKind::device_to_device, cudaMemcpyDeviceToDevice);
SAME_NUMBER(cudart::CopyKind::by_address, cudaMemcpyDefault);
SAME_NUMBER(cudart::MemoryType::host, cudaMemoryTypeHost);
SAME_NUMBER(cudart::MemoryType::device, cudaMemoryTypeDevice);
SAME_NUMBER(cudart::MemoryType::managed, cudaMemoryTypeManaged);
SAME_NUMBER(cudart::FunctionAttribute::max_dynamic_shared, cudaFuncAttributeMaxDynamicSharedMemorySize);
SAME_NUMBER(cudart::FunctionAttribute::shared_carveout, cudaFuncAttributePreferredSharedMemoryCarveout);
SAME_NUMBER(cudart::FunctionAttribute::non_portable_cluster_size, cudaFuncAttributeNonPortableClusterSizeAllowed);
SAME_NUMBER(cudart::Limit::persisting_l2_size, cudaLimitPersistingL2CacheSize);
SAME_NUMBER(cudart::PoolAttribute::release_threshold, cudaMemPoolAttrReleaseThreshold);
SAME_NUMBER(cudart::PoolAttribute::used_high, cudaMemPoolAttrUsedMemHigh);
SAME_NUMBER(cudart::EntryPointQuery::symbol_not_found, cudaDriverEntryPointSymbolNotFound);
SAME_NUMBER(cudart::stream_non_blocking, cudaStreamNonBlocking);
SAME_NUMBER(cudart::event_disable_timing, cudaEventDisableTiming);
SAME_NUMBER(cudart::event_interprocess, cudaEventInterprocess);

SAME_SIZE(cudart::Dim3, dim3);
SAME_SIZE(cudart::PointerAttributes, cudaPointerAttributes);
SAME_FIELD(cudart::PointerAttributes, host_pointer, cudaPointerAttributes, hostPointer);
SAME_SIZE(cudart::FunctionAttributes, cudaFuncAttributes);
SAME_FIELD(cudart::FunctionAttributes, max_dynamic_shared_bytes, cudaFuncAttributes, maxDynamicSharedSizeBytes);
SAME_FIELD(cudart::FunctionAttributes, non_portable_cluster_size_allowed, cudaFuncAttributes,
           nonPortableClusterSizeAllowed);
SAME_SIZE(cudart::LaunchConfig, cudaLaunchConfig_t);
SAME_FIELD(cudart::LaunchConfig, stream, cudaLaunchConfig_t, stream);
SAME_FIELD(cudart::LaunchConfig, attribute_count, cudaLaunchConfig_t, numAttrs);
SAME_SIZE(cudart::KernelNodeParameters, cudaKernelNodeParams);
SAME_FIELD(cudart::KernelNodeParameters, arguments, cudaKernelNodeParams, kernelParams);
SAME_SIZE(cudart::MemsetParameters, cudaMemsetParams);
SAME_FIELD(cudart::MemsetParameters, height, cudaMemsetParams, height);
SAME_SIZE(cudart::HostNodeParameters, cudaHostNodeParams);
SAME_SIZE(cudart::CopyParameters, cudaMemcpy3DParms);
SAME_FIELD(cudart::CopyParameters, src, cudaMemcpy3DParms, srcPtr);
SAME_FIELD(cudart::CopyParameters, dst_position, cudaMemcpy3DParms, dstPos);
SAME_FIELD(cudart::CopyParameters, kind, cudaMemcpy3DParms, kind);
SAME_SIZE(cudart::ChildGraphParameters, cudaChildGraphNodeParams);
SAME_NUMBER(cudart::child_graph_is_copied, cudaGraphChildGraphOwnershipClone);
SAME_SIZE(cudart::ConditionalParameters, cudaConditionalNodeParams);
SAME_FIELD(cudart::ConditionalParameters, size, cudaConditionalNodeParams, size);
SAME_FIELD(cudart::ConditionalParameters, bodies, cudaConditionalNodeParams, phGraph_out);
SAME_NUMBER(cudart::condition_has_default, cudaGraphCondAssignDefault);
SAME_SIZE(cudart::KernelNodeParameters, cudaKernelNodeParamsV2);
SAME_FIELD(cudart::KernelNodeParameters, arguments, cudaKernelNodeParamsV2, kernelParams);
SAME_SIZE(cudart::MemsetParameters, cudaMemsetParamsV2);
SAME_SIZE(cudart::HostNodeParameters, cudaHostNodeParamsV2);
SAME_SIZE(cudart::NodeParameters, cudaGraphNodeParams);
SAME_FIELD(cudart::NodeParameters, kernel, cudaGraphNodeParams, kernel);
SAME_FIELD(cudart::NodeParameters, copy, cudaGraphNodeParams, memcpy);
SAME_FIELD(cudart::NodeParameters, event, cudaGraphNodeParams, eventRecord);
SAME_FIELD(cudart::NodeParameters, conditional, cudaGraphNodeParams, conditional);
SAME_FIELD(cudart::NodeParameters, allocation, cudaGraphNodeParams, alloc);
SAME_FIELD(cudart::NodeParameters, freed, cudaGraphNodeParams, free);
SAME_SIZE(cudart::MemoryAllocParameters, cudaMemAllocNodeParams);
SAME_SIZE(cudart::MemoryAllocParameters, cudaMemAllocNodeParamsV2);
SAME_FIELD(cudart::MemoryAllocParameters, access, cudaMemAllocNodeParams, accessDescs);
SAME_FIELD(cudart::MemoryAllocParameters, bytes, cudaMemAllocNodeParams, bytesize);
SAME_FIELD(cudart::MemoryAllocParameters, pointer, cudaMemAllocNodeParams, dptr);
SAME_NUMBER(cudart::memory_is_pinned, cudaMemAllocationTypePinned);
SAME_NUMBER(cudart::location_is_device, cudaMemLocationTypeDevice);
SAME_NUMBER(cudart::graph_frees_on_launch, cudaGraphInstantiateFlagAutoFreeOnLaunch);
SAME_NUMBER(graphs::NodeType::memory_alloc, cudaGraphNodeTypeMemAlloc);
SAME_NUMBER(graphs::NodeType::memory_free, cudaGraphNodeTypeMemFree);
SAME_NUMBER(phantora::graph_memory::Attribute::used, cudaGraphMemAttrUsedMemCurrent);
SAME_NUMBER(phantora::graph_memory::Attribute::reserved_high, cudaGraphMemAttrReservedMemHigh);
SAME_NUMBER(graphs::NodeType::kernel, cudaGraphNodeTypeKernel);
SAME_NUMBER(graphs::NodeType::event_record, cudaGraphNodeTypeEventRecord);
SAME_NUMBER(graphs::NodeType::conditional, cudaGraphNodeTypeConditional);
SAME_NUMBER(graphs::Conditional::Kind::branch, cudaGraphCondTypeIf);
SAME_NUMBER(graphs::Conditional::Kind::loop, cudaGraphCondTypeWhile);
SAME_NUMBER(graphs::Conditional::Kind::choice, cudaGraphCondTypeSwitch);
SAME_SIZE(cudart::GraphEdge, cudaGraphEdgeData);
SAME_SIZE(cudart::GraphInstantiateParameters, cudaGraphInstantiateParams);
SAME_FIELD(cudart::GraphInstantiateParameters, result, cudaGraphInstantiateParams, result_out);
SAME_SIZE(cudart::GraphUpdateResult, cudaGraphExecUpdateResultInfo);
SAME_FIELD(cudart::GraphUpdateResult, error_from_node, cudaGraphExecUpdateResultInfo, errorFromNode);
SAME_SIZE(cudart::PitchedPointer, cudaPitchedPtr);
SAME_SIZE(cudart::Extent, cudaExtent);

SAME_SIZE(cudart::DeviceProperties, cudaDeviceProp);
#define SAME_PROPERTY(ours, theirs) SAME_FIELD(cudart::DeviceProperties, ours, cudaDeviceProp, theirs)
SAME_PROPERTY(name, name);
SAME_PROPERTY(uuid, uuid);
SAME_PROPERTY(total_global_memory, totalGlobalMem);
SAME_PROPERTY(shared_memory_per_block, sharedMemPerBlock);
SAME_PROPERTY(registers_per_block, regsPerBlock);
SAME_PROPERTY(warp_size, warpSize);
SAME_PROPERTY(max_threads_per_block, maxThreadsPerBlock);
SAME_PROPERTY(max_grid_size, maxGridSize);
SAME_PROPERTY(total_constant_memory, totalConstMem);
SAME_PROPERTY(major, major);
SAME_PROPERTY(minor, minor);
SAME_PROPERTY(texture_alignment, textureAlignment);
SAME_PROPERTY(multiprocessor_count, multiProcessorCount);
SAME_PROPERTY(integrated, integrated);
SAME_PROPERTY(surface_alignment, surfaceAlignment);
SAME_PROPERTY(ecc_enabled, ECCEnabled);
SAME_PROPERTY(pci_bus_id, pciBusID);
SAME_PROPERTY(async_engine_count, asyncEngineCount);
SAME_PROPERTY(l2_cache_size, l2CacheSize);
SAME_PROPERTY(max_threads_per_multiprocessor, maxThreadsPerMultiProcessor);
SAME_PROPERTY(shared_memory_per_multiprocessor, sharedMemPerMultiprocessor);
SAME_PROPERTY(registers_per_multiprocessor, regsPerMultiprocessor);
SAME_PROPERTY(managed_memory, managedMemory);
SAME_PROPERTY(is_multi_gpu_board, isMultiGpuBoard);
SAME_PROPERTY(cooperative_launch, cooperativeLaunch);
SAME_PROPERTY(shared_memory_per_block_optin, sharedMemPerBlockOptin);
SAME_PROPERTY(max_blocks_per_multiprocessor, maxBlocksPerMultiProcessor);
SAME_PROPERTY(reserved_shared_memory_per_block, reservedSharedMemPerBlock);
SAME_PROPERTY(memory_pools_supported, memoryPoolsSupported);
SAME_PROPERTY(gpu_direct_rdma_supported, gpuDirectRDMASupported);
SAME_PROPERTY(ipc_event_supported, ipcEventSupported);
SAME_PROPERTY(cluster_launch, clusterLaunch);
SAME_PROPERTY(host_numa_id, hostNumaId);
SAME_PROPERTY(host_numa_multinode_ipc_supported, hostNumaMultinodeIpcSupported);

SAME_NUMBER(driver::Status::invalid_value, CUDA_ERROR_INVALID_VALUE);
SAME_NUMBER(driver::Status::out_of_memory, CUDA_ERROR_OUT_OF_MEMORY);
SAME_NUMBER(driver::Status::not_initialized, CUDA_ERROR_NOT_INITIALIZED);
SAME_NUMBER(driver::Status::invalid_device, CUDA_ERROR_INVALID_DEVICE);
SAME_NUMBER(driver::Status::invalid_context, CUDA_ERROR_INVALID_CONTEXT);
SAME_NUMBER(driver::Status::invalid_handle, CUDA_ERROR_INVALID_HANDLE);
SAME_NUMBER(driver::Status::not_found, CUDA_ERROR_NOT_FOUND);
SAME_NUMBER(driver::Status::not_ready, CUDA_ERROR_NOT_READY);
SAME_NUMBER(driver::Status::not_permitted, CUDA_ERROR_NOT_PERMITTED);
SAME_NUMBER(driver::Status::not_supported, CUDA_ERROR_NOT_SUPPORTED);
SAME_NUMBER(driver::PointerAttribute::memory_type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
SAME_NUMBER(driver::PointerAttribute::buffer_id, CU_POINTER_ATTRIBUTE_BUFFER_ID);
SAME_NUMBER(driver::PointerAttribute::device_ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
SAME_NUMBER(driver::PointerAttribute::is_legacy_ipc_capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE);
SAME_NUMBER(driver::PointerAttribute::range_size, CU_POINTER_ATTRIBUTE_RANGE_SIZE);
SAME_NUMBER(driver::PointerAttribute::is_mapped, CU_POINTER_ATTRIBUTE_MAPPED);
SAME_NUMBER(driver::FunctionAttribute::registers, CU_FUNC_ATTRIBUTE_NUM_REGS);
SAME_NUMBER(driver::FunctionAttribute::max_dynamic_shared_bytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
SAME_NUMBER(driver::FunctionAttribute::non_portable_cluster_size_allowed,
            CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
SAME_NUMBER(driver::EntryPointQuery::version_not_sufficient, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
SAME_NUMBER(driver::entry_points_per_thread_stream, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
SAME_SIZE(driver::LaunchConfig, CUlaunchConfig);
SAME_FIELD(driver::LaunchConfig, stream, CUlaunchConfig, hStream);
SAME_FIELD(driver::LaunchConfig, attribute_count, CUlaunchConfig, numAttrs);
SAME_SIZE(driver::AllocationProperties, CUmemAllocationProp);
SAME_FIELD(driver::AllocationProperties, handle_types, CUmemAllocationProp, requestedHandleTypes);
SAME_FIELD(driver::AllocationProperties, rdma_capable, CUmemAllocationProp, allocFlags.gpuDirectRDMACapable);
SAME_FIELD(driver::AllocationProperties, usage, CUmemAllocationProp, allocFlags.usage);
static_assert(offsetof(driver::AllocationProperties, location_type) == offsetof(CUmemAllocationProp, location.type));
static_assert(offsetof(driver::AllocationProperties, location) == offsetof(CUmemAllocationProp, location.id));
SAME_SIZE(driver::AccessDescription, CUmemAccessDesc);
SAME_FIELD(driver::AccessDescription, flags, CUmemAccessDesc, flags);
SAME_SIZE(driver::MulticastProperties, CUmulticastObjectProp);
SAME_FIELD(driver::MulticastProperties, devices, CUmulticastObjectProp, numDevices);
SAME_FIELD(driver::MulticastProperties, bytes, CUmulticastObjectProp, size);
SAME_FIELD(driver::MulticastProperties, handle_types, CUmulticastObjectProp, handleTypes);
SAME_FIELD(driver::MulticastProperties, flags, CUmulticastObjectProp, flags);
SAME_NUMBER(driver::allocation_pinned, CU_MEM_ALLOCATION_TYPE_PINNED);
SAME_NUMBER(driver::location_device, CU_MEM_LOCATION_TYPE_DEVICE);
SAME_NUMBER(driver::handle_posix_descriptor, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
SAME_NUMBER(phantora::virtual_memory::Access::read, CU_MEM_ACCESS_FLAGS_PROT_READ);
SAME_NUMBER(phantora::virtual_memory::Access::read_write, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
static_assert(sizeof(phantora::ipc::MemoryHandle) == sizeof(cudaIpcMemHandle_t));
static_assert(sizeof(phantora::ipc::MemoryHandle) == sizeof(CUipcMemHandle));
SAME_SIZE(driver::Uuid, CUuuid);
static_assert(sizeof(driver::TensorMap) == sizeof(CUtensorMap));

// Numbers of device attributes that native/runtime/device.cpp answers by (the driver's are the same).
SAME_NUMBER(16, cudaDevAttrMultiProcessorCount);
SAME_NUMBER(33, cudaDevAttrPciBusId);
SAME_NUMBER(38, cudaDevAttrL2CacheSize);
SAME_NUMBER(39, cudaDevAttrMaxThreadsPerMultiProcessor);
SAME_NUMBER(75, cudaDevAttrComputeCapabilityMajor);
SAME_NUMBER(81, cudaDevAttrMaxSharedMemoryPerMultiprocessor);
SAME_NUMBER(97, cudaDevAttrMaxSharedMemoryPerBlockOptin);
SAME_NUMBER(102, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
SAME_NUMBER(103, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
SAME_NUMBER(110, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED);
SAME_NUMBER(128, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED);
SAME_NUMBER(132, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED);
SAME_NUMBER(106, cudaDevAttrMaxBlocksPerMultiprocessor);
SAME_NUMBER(115, cudaDevAttrMemoryPoolsSupported);
SAME_NUMBER(120, cudaDevAttrClusterLaunch);
SAME_NUMBER(132, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED);
