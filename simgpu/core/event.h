// Events. A record is a number; an event is complete when its last record has been reached. What waits for an
// event waits for the record that was the last one at the time of the call.
#pragma once

#include <memory>

#include "simgpu/core/abi.h"

namespace simgpu {

// cudaEventDisableTiming, cudaEventInterprocess.
inline constexpr unsigned kEventDisableTiming = 2;
inline constexpr unsigned kEventInterprocess = 4;

// cudaEventRecordExternal, cudaEventWaitExternal: in a capture, a node of the graph instead of a dependency.
inline constexpr unsigned kEventExternal = 1;

Error create_event(unsigned flags, void** handle);  // on the current device
Error destroy_event(void* handle);

// kInvalidHandle if the event belongs to another device than the stream.
Error record_event(void* handle, void* stream, unsigned flags);

Error query_event(void* handle);  // kSuccess (also if never recorded) or kNotReady
Error synchronize_event(void* handle);
Error stream_wait_event(void* stream, void* handle, unsigned flags);
Error elapsed_time(float* milliseconds, void* start, void* end);

}  // namespace simgpu
