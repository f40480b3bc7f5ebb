// Events.
#include "simgpu/core/event.h"

#include "simgpu/core/call.h"

using namespace simgpu;

SIMGPU_API Error cudaEventCreate(void** event) {
  return runtime_call(__func__, [&]() -> Error { return create_event(0, event); });
}

SIMGPU_API Error cudaEventCreateWithFlags(void** event, unsigned flags) {
  return runtime_call(__func__, [&]() -> Error { return create_event(flags, event); });
}

SIMGPU_API Error cudaEventDestroy(void* event) {
  return runtime_call(__func__, [&]() -> Error { return destroy_event(event); });
}

SIMGPU_API Error cudaEventRecord(void* event, void* stream) {
  return runtime_call(__func__, [&]() -> Error { return record_event(event, stream, 0); });
}

SIMGPU_API Error cudaEventRecordWithFlags(void* event, void* stream, unsigned flags) {
  return runtime_call(__func__, [&]() -> Error { return record_event(event, stream, flags); });
}

SIMGPU_API Error cudaEventQuery(void* event) {
  return runtime_call(__func__, [&]() -> Error { return query_event(event); });
}

SIMGPU_API Error cudaEventSynchronize(void* event) {
  return runtime_call(__func__, [&]() -> Error { return synchronize_event(event); });
}

SIMGPU_API Error cudaEventElapsedTime(float* milliseconds, void* start, void* end) {
  return runtime_call(__func__, [&]() -> Error { return elapsed_time(milliseconds, start, end); });
}

// The name that programs built with CUDA 12.8 and later 12 versions use.
SIMGPU_API Error cudaEventElapsedTime_v2(float* milliseconds, void* start, void* end) {
  return runtime_call(__func__, [&]() -> Error { return elapsed_time(milliseconds, start, end); });
}
