// Streams, events and capture, as the driver names them.
#include "simgpu/core/stream.h"

#include "simgpu/core/call.h"
#include "simgpu/core/capture.h"
#include "simgpu/core/event.h"
#include "simgpu/core/stream_object.h"

using namespace simgpu;

namespace {

// A default stream is the current context's, which driver_call() has made sure of.
std::shared_ptr<Stream> stream_of(void* handle) { return find_stream(handle); }

}  // namespace

SIMGPU_API Error cuStreamCreate(void** stream, unsigned flags) {
  return driver_call(__func__, [&]() -> Error {
    if (stream == nullptr || (flags & ~kStreamNonBlocking) != 0) return kInvalidValue;
    *stream = create_stream(flags, 0);
    return kSuccess;
  });
}

SIMGPU_API Error cuStreamCreateWithPriority(void** stream, unsigned flags, int priority) {
  return driver_call(__func__, [&]() -> Error {
    if (stream == nullptr || (flags & ~kStreamNonBlocking) != 0) return kInvalidValue;
    *stream = create_stream(flags, priority);
    return kSuccess;
  });
}

SIMGPU_API Error cuStreamDestroy_v2(void* stream) {
  return driver_call(__func__, [&]() -> Error { return destroy_stream(stream); });
}

SIMGPU_API Error cuStreamSynchronize(void* stream) {
  return driver_call(__func__, [&]() -> Error { return synchronize_stream(stream); });
}

SIMGPU_API Error cuStreamQuery(void* stream) {
  return driver_call(__func__, [&]() -> Error { return query_stream(stream); });
}

SIMGPU_API Error cuStreamWaitEvent(void* stream, void* event, unsigned flags) {
  return driver_call(__func__, [&]() -> Error { return stream_wait_event(stream, event, flags); });
}

SIMGPU_API Error cuStreamGetCtx(void* handle, void** context) {
  return driver_call(__func__, [&]() -> Error {
    const std::shared_ptr<Stream> stream = stream_of(handle);
    if (stream == nullptr) return kInvalidHandle;
    if (Error error = check_legacy_use(*stream, false)) return error;
    *context = primary_context(stream->device);
    return kSuccess;
  });
}

SIMGPU_API Error cuStreamGetDevice(void* handle, int* ordinal) {
  return driver_call(__func__, [&]() -> Error {
    const std::shared_ptr<Stream> stream = stream_of(handle);
    if (stream == nullptr) return kInvalidHandle;
    *ordinal = stream->device;
    return kSuccess;
  });
}

SIMGPU_API Error cuStreamGetFlags(void* handle, unsigned* flags) {
  return driver_call(__func__, [&]() -> Error {
    const std::shared_ptr<Stream> stream = stream_of(handle);
    if (stream == nullptr) return kInvalidHandle;
    *flags = stream->flags;
    return kSuccess;
  });
}

SIMGPU_API Error cuStreamGetPriority(void* handle, int* priority) {
  return driver_call(__func__, [&]() -> Error {
    const std::shared_ptr<Stream> stream = stream_of(handle);
    if (stream == nullptr) return kInvalidHandle;
    *priority = stream->priority;
    return kSuccess;
  });
}

SIMGPU_API Error cuStreamGetId(void* handle, unsigned long long* id) {
  return driver_call(__func__, [&]() -> Error {
    const std::shared_ptr<Stream> stream = stream_of(handle);
    if (stream == nullptr) return kInvalidHandle;
    *id = stream->id;
    return kSuccess;
  });
}

SIMGPU_API Error cuLaunchHostFunc(void* stream, void (*function)(void*), void* data) {
  return driver_call(__func__, [&]() -> Error {
    if (function == nullptr) return kInvalidValue;
    return enqueue(
        stream, [=] { function(data); }, Run::kOnWorker);
  });
}

// --- events --------------------------------------------------------------------------------------

SIMGPU_API Error cuEventCreate(void** event, unsigned flags) {
  return driver_call(__func__, [&]() -> Error { return create_event(flags, event); });
}

SIMGPU_API Error cuEventDestroy_v2(void* event) {
  return driver_call(__func__, [&]() -> Error { return destroy_event(event); });
}

SIMGPU_API Error cuEventRecord(void* event, void* stream) {
  return driver_call(__func__, [&]() -> Error { return record_event(event, stream, 0); });
}

SIMGPU_API Error cuEventRecordWithFlags(void* event, void* stream, unsigned flags) {
  return driver_call(__func__, [&]() -> Error { return record_event(event, stream, flags); });
}

SIMGPU_API Error cuEventQuery(void* event) {
  return driver_call(__func__, [&]() -> Error { return query_event(event); });
}

SIMGPU_API Error cuEventSynchronize(void* event) {
  return driver_call(__func__, [&]() -> Error { return synchronize_event(event); });
}

SIMGPU_API Error cuEventElapsedTime(float* milliseconds, void* start, void* end) {
  return driver_call(__func__, [&]() -> Error { return elapsed_time(milliseconds, start, end); });
}

SIMGPU_API Error cuEventElapsedTime_v2(float* milliseconds, void* start, void* end) {
  return driver_call(__func__, [&]() -> Error { return elapsed_time(milliseconds, start, end); });
}

// --- capture -------------------------------------------------------------------------------------

SIMGPU_API Error cuStreamIsCapturing(void* handle, int* status) {
  return driver_call(__func__, [&]() -> Error {
    const std::shared_ptr<Stream> stream = stream_of(handle);
    if (stream == nullptr) return kInvalidHandle;
    if (Error error = check_legacy_use(*stream, false)) return error;
    *status = static_cast<int>(capture_info(*stream).status);
    return kSuccess;
  });
}

SIMGPU_API Error cuThreadExchangeStreamCaptureMode(int* mode) {
  return guarded(__func__, kUnknownError, [&]() -> Error {
    if (mode == nullptr || *mode < 0 || *mode > static_cast<int>(CaptureMode::kRelaxed)) return kInvalidValue;
    *mode = static_cast<int>(exchange_capture_mode(static_cast<CaptureMode>(*mode)));
    return kSuccess;
  });
}
