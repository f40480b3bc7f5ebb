// The functions of the simulated GPU that the tests call, declared by hand as a program without headers
// would.
#pragma once

#include <cstddef>
#include <cstdint>

#include "simgpu/core/abi.h"

using Handle = void*;

// Flags and modes, from driver_types.h.
inline constexpr unsigned kNonBlocking = 1;
inline constexpr int kGlobalMode = 0;
inline constexpr int kThreadLocalMode = 1;
inline constexpr int kRelaxedMode = 2;
inline constexpr int kToDevice = 1;
inline constexpr int kToHost = 2;
inline constexpr int kOnDevice = 3;

extern "C" {
int cudaGetLastError();
int cudaPeekAtLastError();
const char* cudaGetErrorName(int error);
const char* cudaGetErrorString(int error);

int cudaGetDeviceCount(int* count);
int cudaGetDevice(int* device);
int cudaSetDevice(int device);
int cudaDeviceSynchronize();
int cudaDeviceGetAttribute(int* value, int attribute, int device);
int cudaDeviceGetPCIBusId(char* text, int length, int device);

int cudaMalloc(void** address, size_t bytes);
int cudaFree(void* address);
int cudaMallocManaged(void** address, size_t bytes, unsigned flags);
int cudaMallocAsync(void** address, size_t bytes, Handle stream);
int cudaMallocFromPoolAsync(void** address, size_t bytes, Handle pool, Handle stream);
int cudaFreeAsync(void* address, Handle stream);
int cudaDeviceGetDefaultMemPool(Handle* pool, int device);
int cudaMemPoolGetAttribute(Handle pool, int attribute, void* value);
int cudaHostAlloc(void** address, size_t bytes, unsigned flags);
int cudaMallocHost(void** address, size_t bytes);
int cudaFreeHost(void* address);
int cudaHostRegister(void* address, size_t bytes, unsigned flags);
int cudaHostUnregister(void* address);
int cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes);
int cudaPointerGetAttributes(void* attributes, const void* address);

int cudaMemcpy(void* to, const void* from, size_t bytes, int kind);
int cudaMemcpyAsync(void* to, const void* from, size_t bytes, int kind, Handle stream);
int cudaMemset(void* address, int value, size_t bytes);
int cudaMemsetAsync(void* address, int value, size_t bytes, Handle stream);

int cudaStreamCreate(Handle* stream);
int cudaStreamCreateWithFlags(Handle* stream, unsigned flags);
int cudaStreamDestroy(Handle stream);
int cudaStreamSynchronize(Handle stream);
int cudaStreamQuery(Handle stream);
int cudaStreamWaitEvent(Handle stream, Handle event, unsigned flags);
int cudaLaunchHostFunc(Handle stream, void (*function)(void*), void* data);

int cudaEventCreateWithFlags(Handle* event, unsigned flags);
int cudaEventDestroy(Handle event);
int cudaEventRecord(Handle event, Handle stream);
int cudaEventQuery(Handle event);
int cudaEventSynchronize(Handle event);
int cudaEventElapsedTime(float* milliseconds, Handle start, Handle end);

int cudaStreamBeginCapture(Handle stream, int mode);
int cudaStreamEndCapture(Handle stream, Handle* graph);
int cudaStreamIsCapturing(Handle stream, int* status);
int cudaThreadExchangeStreamCaptureMode(int* mode);
int cudaGraphInstantiate(Handle* executable, Handle graph, unsigned long long flags);
int cudaGraphLaunch(Handle executable, Handle stream);
int cudaGraphGetNodes(Handle graph, Handle* nodes, size_t* count);
int cudaGraphDestroy(Handle graph);
int cudaGraphExecDestroy(Handle executable);

int cudaLaunchKernel(const void* function, simgpu::Dim3 grid, simgpu::Dim3 block, void** arguments,
                     size_t shared, Handle stream);
int cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned version,
                                     unsigned long long flags, int* status);
int cudaIpcGetMemHandle(void* handle, void* address);

int cuInit(unsigned flags);
int cuCtxGetCurrent(Handle* context);
int cuCtxSetCurrent(Handle context);
int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active);
int cuDevicePrimaryCtxRetain(Handle* context, int device);
int cuMemGetInfo_v2(size_t* free_bytes, size_t* total_bytes);
int cuEventCreate(Handle* event, unsigned flags);
int cuEventRecord(Handle event, Handle stream);
int cuEventQuery(Handle event);
int cuEventDestroy_v2(Handle event);
int cuStreamIsCapturing(Handle stream, int* status);
int cuStreamGetCtx(Handle stream, Handle* context);
int cuThreadExchangeStreamCaptureMode(int* mode);
int cuGetProcAddress_v2(const char* name, void** function, int version, unsigned long long flags,
                        int* status);

int cuMemAddressReserve(unsigned long long* address, size_t bytes, size_t alignment,
                        unsigned long long wanted, unsigned long long flags);
int cuMemAddressFree(unsigned long long address, size_t bytes);
int cuMemCreate(unsigned long long* handle, size_t bytes, const void* properties, unsigned long long flags);
int cuMemRelease(unsigned long long handle);
int cuMemMap(unsigned long long address, size_t bytes, size_t offset, unsigned long long handle,
             unsigned long long flags);
int cuMemSetAccess(unsigned long long address, size_t bytes, const void* descriptors, size_t count);
int cuMemUnmap(unsigned long long address, size_t bytes);
int cuMemRetainAllocationHandle(unsigned long long* handle, void* address);
}
