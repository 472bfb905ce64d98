// NCCL as a C++ test program calls it: the shim's own types, and the functions of libnccl.so.2.
#pragma once
#include "nccl/types.h"

namespace phantora::nccl {
class Communicator;
}

using namespace phantora::nccl;
using Comm = Communicator*;

extern "C" {
Result ncclGetVersion(int*);
Result ncclGetUniqueId(UniqueId*);
Result ncclCommInitAll(Comm*, int, const int*);
Result ncclCommInitRank(Comm*, int, UniqueId, int);
Result ncclCommInitRankConfig(Comm*, int, UniqueId, int, Config*);
Result ncclCommSplit(Comm, int, int, Comm*, Config*);
Result ncclCommFinalize(Comm);
Result ncclCommDestroy(Comm);
Result ncclCommAbort(Comm);
Result ncclCommGetAsyncError(Comm, Result*);
Result ncclCommCount(Comm, int*);
Result ncclCommCuDevice(Comm, int*);
Result ncclCommUserRank(Comm, int*);
Result ncclCommRegister(Comm, void*, size_t, void**);
Result ncclCommDeregister(Comm, void*);
Result ncclMemAlloc(void**, size_t);
Result ncclMemFree(void*);
const char* ncclGetErrorString(Result);
const char* ncclGetLastError(Comm);
Result ncclAllReduce(const void*, void*, size_t, DataType, RedOp, Comm, void*);
Result ncclReduce(const void*, void*, size_t, DataType, RedOp, int, Comm, void*);
Result ncclReduceScatter(const void*, void*, size_t, DataType, RedOp, Comm, void*);
Result ncclBroadcast(const void*, void*, size_t, DataType, int, Comm, void*);
Result ncclBcast(void*, size_t, DataType, int, Comm, void*);
Result ncclAllGather(const void*, void*, size_t, DataType, Comm, void*);
Result ncclAlltoAll(const void*, void*, size_t, DataType, Comm, void*);
Result ncclGather(const void*, void*, size_t, DataType, int, Comm, void*);
Result ncclScatter(const void*, void*, size_t, DataType, int, Comm, void*);
Result ncclSend(const void*, size_t, DataType, int, Comm, void*);
Result ncclRecv(void*, size_t, DataType, int, Comm, void*);
Result ncclGroupStart();
Result ncclGroupEnd();
Result ncclRedOpCreatePreMulSum(RedOp*, void*, DataType, ScalarResidence, Comm);
Result ncclRedOpDestroy(RedOp, Comm);
}
