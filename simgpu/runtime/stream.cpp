// Streams and host functions.
#include <algorithm>

#include "simgpu/core/call.h"
#include "simgpu/core/event.h"
#include "simgpu/core/profile.h"
#include "simgpu/core/stream_object.h"

using namespace simgpu;

namespace {

Error make_stream(void** handle, unsigned flags, int priority) {
  if (handle == nullptr || (flags & ~kStreamNonBlocking) != 0) return kInvalidValue;
  const int clamped = std::clamp(priority, profile::kGreatestStreamPriority, profile::kLowestStreamPriority);
  *handle = create_stream(flags, clamped);
  return kSuccess;
}

}  // namespace

SIMGPU_API Error cudaStreamCreate(void** stream) {
  return runtime_call(__func__, [&]() -> Error { return make_stream(stream, 0, 0); });
}

SIMGPU_API Error cudaStreamCreateWithFlags(void** stream, unsigned flags) {
  return runtime_call(__func__, [&]() -> Error { return make_stream(stream, flags, 0); });
}

SIMGPU_API Error cudaStreamCreateWithPriority(void** stream, unsigned flags, int priority) {
  return runtime_call(__func__, [&]() -> Error { return make_stream(stream, flags, priority); });
}

SIMGPU_API Error cudaStreamDestroy(void* stream) {
  return runtime_call(__func__, [&]() -> Error { return destroy_stream(stream); });
}

SIMGPU_API Error cudaStreamSynchronize(void* stream) {
  return runtime_call(__func__, [&]() -> Error { return synchronize_stream(stream); });
}

SIMGPU_API Error cudaStreamQuery(void* stream) {
  return runtime_call(__func__, [&]() -> Error { return query_stream(stream); });
}

SIMGPU_API Error cudaStreamWaitEvent(void* stream, void* event, unsigned flags) {
  return runtime_call(__func__, [&]() -> Error { return stream_wait_event(stream, event, flags); });
}

// --- what a stream is ----------------------------------------------------------------------------

SIMGPU_API Error cudaStreamGetPriority(void* handle, int* priority) {
  return runtime_call(__func__, [&]() -> Error {
    const std::shared_ptr<Stream> stream = find_stream(handle);
    if (stream == nullptr) return kInvalidHandle;
    *priority = stream->priority;
    return kSuccess;
  });
}

SIMGPU_API Error cudaStreamGetFlags(void* handle, unsigned* flags) {
  return runtime_call(__func__, [&]() -> Error {
    const std::shared_ptr<Stream> stream = find_stream(handle);
    if (stream == nullptr) return kInvalidHandle;
    *flags = stream->flags;
    return kSuccess;
  });
}

SIMGPU_API Error cudaStreamGetId(void* handle, unsigned long long* id) {
  return runtime_call(__func__, [&]() -> Error {
    const std::shared_ptr<Stream> stream = find_stream(handle);
    if (stream == nullptr) return kInvalidHandle;
    *id = stream->id;
    return kSuccess;
  });
}

SIMGPU_API Error cudaStreamGetDevice(void* handle, int* ordinal) {
  return runtime_call(__func__, [&]() -> Error {
    const std::shared_ptr<Stream> stream = find_stream(handle);
    if (stream == nullptr) return kInvalidHandle;
    *ordinal = stream->device;
    return kSuccess;
  });
}

// --- host functions ------------------------------------------------------------------------------

// Always on the stream's worker, as hardware calls them from a thread of the driver.
SIMGPU_API Error cudaLaunchHostFunc(void* stream, void (*function)(void*), void* data) {
  return runtime_call(__func__, [&]() -> Error {
    if (function == nullptr) return kInvalidValue;
    return enqueue(
        stream, [=] { function(data); }, Run::kOnWorker);
  });
}

SIMGPU_API Error cudaStreamAddCallback(void* stream, void (*callback)(void*, Error, void*), void* data,
                                       unsigned flags) {
  return runtime_call(__func__, [&]() -> Error {
    if (callback == nullptr || flags != 0) return kInvalidValue;
    if (is_capturing(stream)) return kCaptureUnsupported;
    return enqueue(
        stream, [=] { callback(stream, kSuccess, data); }, Run::kOnWorker);
  });
}
