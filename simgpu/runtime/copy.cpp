// Copies and fills.

#include "simgpu/core/copy.h"

#include "simgpu/core/call.h"
#include "simgpu/core/capture.h"
#include "simgpu/core/ledger.h"

using namespace simgpu;

namespace {

// After work on the legacy stream by a call that is synchronous by its contract.
Error wait_for_legacy_stream(Error queued) {
  if (queued != kSuccess) return queued;
  StreamMark mark;
  if (Error error = mark_stream(nullptr, &mark)) return error;
  wait_for(mark);
  return device_fault(device());
}

// Memory of a __device__ variable: the program's own variable of the same name stands for it.
Error symbol_memory(const void* symbol, size_t bytes, size_t offset, void** address) {
  Block block;
  if (!find_block(symbol, &block) || block.kind != MemoryKind::kSymbol) return kInvalidSymbol;
  if (offset + bytes > block.bytes) return kInvalidValue;
  *address = reinterpret_cast<char*>(block.base) + offset;
  return kSuccess;
}

}  // namespace

// --- linear --------------------------------------------------------------------------------------

SIMGPU_API Error cudaMemcpyAsync(void* to, const void* from, size_t bytes, int kind, void* stream) {
  return runtime_call(__func__, [&]() -> Error { return queue_copy(to, from, bytes, kind, stream); });
}

SIMGPU_API Error cudaMemcpy(void* to, const void* from, size_t bytes, int kind) {
  return runtime_call(__func__, [&]() -> Error {
    if (Error error = check_unsafe_call()) return error;
    return wait_for_legacy_stream(queue_copy(to, from, bytes, kind, nullptr));
  });
}

SIMGPU_API Error cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes, void* stream) {
  return runtime_call(__func__,
                      [&]() -> Error { return queue_copy(to, from, bytes, kDeviceToDevice, stream); });
}

SIMGPU_API Error cudaMemcpyPeer(void* to, int, const void* from, int, size_t bytes) {
  return runtime_call(__func__, [&]() -> Error {
    if (Error error = check_unsafe_call()) return error;
    return wait_for_legacy_stream(queue_copy(to, from, bytes, kDeviceToDevice, nullptr));
  });
}

SIMGPU_API Error cudaMemsetAsync(void* address, int value, size_t bytes, void* stream) {
  return runtime_call(__func__, [&]() -> Error { return queue_fill(address, value, bytes, stream); });
}

SIMGPU_API Error cudaMemset(void* address, int value, size_t bytes) {
  return runtime_call(__func__, [&]() -> Error {
    if (Error error = check_unsafe_call()) return error;
    return wait_for_legacy_stream(queue_fill(address, value, bytes, nullptr));
  });
}

// --- rectangles ----------------------------------------------------------------------------------

SIMGPU_API Error cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                                   size_t width, size_t height, int kind, void* stream) {
  return runtime_call(__func__, [&]() -> Error {
    return queue_copy_rows(to, to_pitch, from, from_pitch, width, height, kind, stream);
  });
}

SIMGPU_API Error cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                              size_t height, int kind) {
  return runtime_call(__func__, [&]() -> Error {
    if (Error error = check_unsafe_call()) return error;
    return wait_for_legacy_stream(
        queue_copy_rows(to, to_pitch, from, from_pitch, width, height, kind, nullptr));
  });
}

// --- __device__ variables ------------------------------------------------------------------------

SIMGPU_API Error cudaMemcpyToSymbol(const void* symbol, const void* from, size_t bytes, size_t offset,
                                    int kind) {
  return runtime_call(__func__, [&]() -> Error {
    void* to = nullptr;
    if (Error error = symbol_memory(symbol, bytes, offset, &to)) return error;
    if (Error error = check_unsafe_call()) return error;
    return wait_for_legacy_stream(queue_copy(to, from, bytes, kind, nullptr));
  });
}

SIMGPU_API Error cudaMemcpyToSymbolAsync(const void* symbol, const void* from, size_t bytes, size_t offset,
                                         int kind, void* stream) {
  return runtime_call(__func__, [&]() -> Error {
    void* to = nullptr;
    if (Error error = symbol_memory(symbol, bytes, offset, &to)) return error;
    return queue_copy(to, from, bytes, kind, stream);
  });
}

SIMGPU_API Error cudaMemcpyFromSymbol(void* to, const void* symbol, size_t bytes, size_t offset, int kind) {
  return runtime_call(__func__, [&]() -> Error {
    void* from = nullptr;
    if (Error error = symbol_memory(symbol, bytes, offset, &from)) return error;
    if (Error error = check_unsafe_call()) return error;
    return wait_for_legacy_stream(queue_copy(to, from, bytes, kind, nullptr));
  });
}

SIMGPU_API Error cudaMemcpyFromSymbolAsync(void* to, const void* symbol, size_t bytes, size_t offset,
                                           int kind, void* stream) {
  return runtime_call(__func__, [&]() -> Error {
    void* from = nullptr;
    if (Error error = symbol_memory(symbol, bytes, offset, &from)) return error;
    return queue_copy(to, from, bytes, kind, stream);
  });
}

SIMGPU_API Error cudaGetSymbolAddress(void** address, const void* symbol) {
  return runtime_call(__func__, [&]() -> Error { return symbol_memory(symbol, 0, 0, address); });
}

SIMGPU_API Error cudaGetSymbolSize(size_t* bytes, const void* symbol) {
  return runtime_call(__func__, [&]() -> Error {
    Block block;
    if (!find_block(symbol, &block) || block.kind != MemoryKind::kSymbol) return kInvalidSymbol;
    *bytes = block.bytes;
    return kSuccess;
  });
}
