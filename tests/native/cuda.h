// The calls of CUDA's runtime and driver that the test programs make; errors as plain numbers.
#pragma once
#include <cstddef>
#include <cstdint>

using cudaStream_t = void*;
using cudaMemPool_t = void*;
using cudaEvent_t = void*;
using CUdeviceptr = uint64_t;
using CUmemGenericAllocationHandle = uint64_t;

inline constexpr int cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorMemoryAllocation = 2,
                     cudaErrorInvalidConfiguration = 9, cudaErrorInvalidDeviceFunction = 98,
                     cudaErrorInvalidDevice = 101, cudaErrorDeviceUninitialized = 201,
                     cudaErrorInvalidResourceHandle = 400, cudaErrorNotReady = 600;
inline constexpr int cudaMemPoolAttrReleaseThreshold = 4, cudaMemPoolAttrReservedMemCurrent = 5,
                     cudaMemPoolAttrReservedMemHigh = 6, cudaMemPoolAttrUsedMemCurrent = 7,
                     cudaMemPoolAttrUsedMemHigh = 8;
inline constexpr int cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2, cudaMemcpyDeviceToDevice = 3,
                     cudaMemcpyDefault = 4;
inline constexpr unsigned cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2;
inline const cudaStream_t cudaStreamPerThread = reinterpret_cast<cudaStream_t>(2);

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};

struct cudaPointerAttributes {
  int type, device;
  void *devicePointer, *hostPointer;
  long reserved[8];
};

struct cudaIpcMemHandle_t {
  char reserved[64];
};

struct CUmemLocation {
  int type, id;
};

struct CUmemAllocationProp {
  int type;
  unsigned requestedHandleTypes;
  CUmemLocation location;
  void* win32HandleMetaData;
  unsigned char compressionType, gpuDirectRDMACapable;
  unsigned short usage;
  unsigned char reserved[4];
};

struct CUmulticastObjectProp {
  unsigned numDevices;
  size_t size;
  unsigned long long handleTypes, flags;
};

struct CUmemAccessDesc {
  CUmemLocation location;
  unsigned flags;
};

extern "C" {
int cudaGetDeviceCount(int*);
int cudaSetDevice(int);
int cudaGetDevice(int*);
int cudaDeviceGetAttribute(int*, int, int);
int cudaDeviceSynchronize();
int cudaGetLastError();
int cudaPeekAtLastError();
const char* cudaGetErrorString(int);

int cudaStreamCreate(cudaStream_t*);
int cudaStreamCreateWithFlags(cudaStream_t*, unsigned);
int cudaStreamCreateWithPriority(cudaStream_t*, unsigned, int);
int cudaStreamGetPriority(cudaStream_t, int*);
int cudaStreamDestroy(cudaStream_t);
int cudaStreamSynchronize(cudaStream_t);
int cudaStreamQuery(cudaStream_t);
int cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned);
int cudaStreamIsCapturing(cudaStream_t, int*);
int cudaStreamBeginCapture(cudaStream_t, int);
int cudaLaunchHostFunc(cudaStream_t, void (*)(void*), void*);

int cudaEventCreate(cudaEvent_t*);
int cudaEventCreateWithFlags(cudaEvent_t*, unsigned);
int cudaEventDestroy(cudaEvent_t);
int cudaEventRecord(cudaEvent_t, cudaStream_t);
int cudaEventQuery(cudaEvent_t);
int cudaEventSynchronize(cudaEvent_t);
int cudaEventElapsedTime(float*, cudaEvent_t, cudaEvent_t);

int cudaMalloc(void**, size_t);
int cudaFree(void*);
int cudaMallocHost(void**, size_t);
int cudaFreeHost(void*);
int cudaHostRegister(void*, size_t, unsigned);
int cudaHostUnregister(void*);
int cudaMallocAsync(void**, size_t, cudaStream_t);
int cudaFreeAsync(void*, cudaStream_t);
int cudaDeviceGetDefaultMemPool(cudaMemPool_t*, int);
int cudaMemPoolGetAttribute(cudaMemPool_t, int, void*);
int cudaMemPoolSetAttribute(cudaMemPool_t, int, void*);
int cudaMemPoolTrimTo(cudaMemPool_t, size_t);
int cudaMemGetInfo(size_t*, size_t*);
int cudaPointerGetAttributes(cudaPointerAttributes*, const void*);
int cudaMemcpy(void*, const void*, size_t, int);
int cudaMemcpyAsync(void*, const void*, size_t, int, cudaStream_t);
int cudaMemcpy2D(void*, size_t, const void*, size_t, size_t, size_t, int);
int cudaMemset(void*, int, size_t);
int cudaMemcpyToSymbol(const void*, const void*, size_t, size_t, int);
int cudaMemcpyFromSymbol(void*, const void*, size_t, size_t, int);

void** __cudaRegisterFatBinary(void*);
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, void*, void*, void*, void*, int*);
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int);
int cudaLaunchKernel(const void*, dim3, dim3, void**, size_t, cudaStream_t);
int cudaGetDriverEntryPointByVersion(const char*, void**, unsigned, unsigned long long, int*);

int cudaIpcGetMemHandle(cudaIpcMemHandle_t*, void*);
int cudaIpcOpenMemHandle(void**, cudaIpcMemHandle_t, unsigned);
int cudaIpcCloseMemHandle(void*);

int cuMemAddressReserve(CUdeviceptr*, size_t, size_t, CUdeviceptr, unsigned long long);
int cuMemAddressFree(CUdeviceptr, size_t);
int cuMemCreate(CUmemGenericAllocationHandle*, size_t, const CUmemAllocationProp*, unsigned long long);
int cuMemRelease(CUmemGenericAllocationHandle);
int cuMemMap(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long);
int cuMemUnmap(CUdeviceptr, size_t);
int cuMemSetAccess(CUdeviceptr, size_t, const CUmemAccessDesc*, size_t);
int cuMemGetAccess(unsigned long long*, const CUmemLocation*, CUdeviceptr);
int cuMemGetAllocationGranularity(size_t*, const CUmemAllocationProp*, int);
int cuMemRetainAllocationHandle(CUmemGenericAllocationHandle*, void*);
int cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp*, CUmemGenericAllocationHandle);
int cuMemExportToShareableHandle(void*, CUmemGenericAllocationHandle, int, unsigned long long);
int cuMemImportFromShareableHandle(CUmemGenericAllocationHandle*, void*, int);
int cuMulticastGetGranularity(size_t*, const CUmulticastObjectProp*, int);
int cuMulticastCreate(CUmemGenericAllocationHandle*, const CUmulticastObjectProp*);
int cuMulticastAddDevice(CUmemGenericAllocationHandle, int);
int cuMulticastBindMem(CUmemGenericAllocationHandle, size_t, CUmemGenericAllocationHandle, size_t, size_t,
                       unsigned long long);
int cuMulticastBindAddr(CUmemGenericAllocationHandle, size_t, CUdeviceptr, size_t, unsigned long long);
int cuMulticastUnbind(CUmemGenericAllocationHandle, int, size_t, size_t);
int cuMemGetAddressRange_v2(CUdeviceptr*, size_t*, CUdeviceptr);
int cuMemcpyHtoD_v2(CUdeviceptr, const void*, size_t);
int cuMemcpyDtoH_v2(void*, CUdeviceptr, size_t);
int cuMemcpyDtoD_v2(CUdeviceptr, CUdeviceptr, size_t);
int cuMemsetD8_v2(CUdeviceptr, unsigned char, size_t);
int cuMemsetD32_v2(CUdeviceptr, unsigned, size_t);
}
