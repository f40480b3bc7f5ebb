// The functions of the simulated GPU that the tests call, declared by hand as a program without headers
// would.
#pragma once

#include <cstddef>
#include <cstdint>

#include "simgpu/nccl/abi.h"

using Comm = void*;
using Stream = void*;
using Event = void*;

extern "C" {
int cudaSetDevice(int device);
int cudaMalloc(void** address, size_t bytes);
int cudaFree(void* address);
int cudaMallocHost(void** address, size_t bytes);
int cudaMemcpy(void* to, const void* from, size_t bytes, int kind);
int cudaMemset(void* address, int value, size_t bytes);
int cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes);
int cudaStreamCreateWithFlags(Stream* stream, unsigned flags);
int cudaStreamSynchronize(Stream stream);
int cudaStreamQuery(Stream stream);
int cudaLaunchHostFunc(Stream stream, void (*function)(void*), void* argument);
int cudaMemsetAsync(void* address, int value, size_t bytes, Stream stream);
int cudaEventCreateWithFlags(Event* event, unsigned flags);
int cudaEventRecord(Event event, Stream stream);
int cudaEventQuery(Event event);
int cudaStreamBeginCapture(Stream stream, int mode);
int cudaStreamEndCapture(Stream stream, void** graph);
int cudaGraphInstantiate(void** executable, void* graph, unsigned long long flags);
int cudaGraphLaunch(void* executable, Stream stream);

int ncclGetVersion(int* version);
int ncclGetUniqueId(simgpu::nccl::UniqueId* id);
int ncclCommInitRank(Comm* comm, int size, simgpu::nccl::UniqueId id, int rank);
int ncclCommInitRankConfig(Comm* comm, int size, simgpu::nccl::UniqueId id, int rank, void* config);
int ncclCommInitAll(Comm* comms, int size, const int* devices);
int ncclCommSplit(Comm comm, int color, int key, Comm* child, void* config);
int ncclCommShrink(Comm comm, const int* excluded, int count, Comm* child, void* config, int flags);
int ncclCommFinalize(Comm comm);
int ncclCommDestroy(Comm comm);
int ncclCommAbort(Comm comm);
int ncclCommRevoke(Comm comm, int flags);
int ncclCommGetAsyncError(Comm comm, int* error);
int ncclCommCount(Comm comm, int* count);
int ncclCommUserRank(Comm comm, int* rank);
int ncclCommCuDevice(Comm comm, int* device);
const char* ncclGetErrorString(int result);
const char* ncclGetLastError(Comm comm);
int ncclMemAlloc(void** address, size_t bytes);
int ncclMemFree(void* address);
int ncclRedOpCreatePreMulSum(int* op, void* scalar, int type, int residence, Comm comm);
int ncclRedOpDestroy(int op, Comm comm);

int ncclAllReduce(const void* send, void* receive, size_t count, int type, int op, Comm comm, Stream stream);
int ncclBroadcast(const void* send, void* receive, size_t count, int type, int root, Comm comm,
                  Stream stream);
int ncclBcast(void* buffer, size_t count, int type, int root, Comm comm, Stream stream);
int ncclReduce(const void* send, void* receive, size_t count, int type, int op, int root, Comm comm,
               Stream stream);
int ncclAllGather(const void* send, void* receive, size_t count, int type, Comm comm, Stream stream);
int ncclReduceScatter(const void* send, void* receive, size_t count, int type, int op, Comm comm,
                      Stream stream);
int ncclAlltoAll(const void* send, void* receive, size_t count, int type, Comm comm, Stream stream);
int ncclGather(const void* send, void* receive, size_t count, int type, int root, Comm comm, Stream stream);
int ncclScatter(const void* send, void* receive, size_t count, int type, int root, Comm comm, Stream stream);
int ncclSend(const void* send, size_t count, int type, int peer, Comm comm, Stream stream);
int ncclRecv(void* receive, size_t count, int type, int peer, Comm comm, Stream stream);
int ncclGroupStart();
int ncclGroupEnd();

int pncclAllReduce(const void* send, void* receive, size_t count, int type, int op, Comm comm, Stream stream);
int ncclCommWindowRegister(Comm comm, void* buffer, size_t bytes, void** window, int flags);
}
