// Streams: queues of operations, each executed in order by a worker thread of its own that is created with
// the first operation that cannot run in the caller. One thread a busy stream, never one scheduler for all:
// an operation may block (a collective waiting for its peers), and that must hold up its own stream only.
//
// Every function takes a stream handle as the program passes it (cudaStream_t / CUstream): one made by
// create_stream(), or 0 and 1 (the legacy default stream of the current device) or 2 (this thread's default
// stream). An unknown handle gives kInvalidHandle. All functions may be called from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "simgpu/core/abi.h"

namespace simgpu {

class Stream;

using Operation = std::function<void()>;

enum class Run {
  kOnWorker,      // always on the stream's worker, never in the caller: what may block or call back
  kInlineIfIdle,  // in the caller if nothing is queued: what takes no time on the device
};

// Appends an operation. Blocks the caller while the stream holds SIMGPU_QUEUE_DEPTH operations, as a full
// launch queue does. On a capturing stream the operation becomes a node of the graph and runs at each replay
// (so it must be callable more than once). The operation runs with the stream's device as current device; it
// must not throw. Errors: kInvalidHandle, or one of the capture errors 900..908.
Error enqueue(void* handle, Operation operation, Run run);

// The same on a given device, for the default streams of a device that is not current.
Error enqueue_on(int device, void* handle, Operation operation, Run run);

// A place in a stream: everything enqueued so far.
struct StreamMark {
  std::shared_ptr<Stream> stream;
  uint64_t position = 0;
};

Error mark_stream(void* handle, StreamMark* mark);
bool reached(const StreamMark& mark);
void wait_for(const StreamMark& mark);  // blocks until all of it has been executed

// False: a stream of another device. Kernels are not launched on those.
bool belongs_to(int device, void* handle);

bool is_idle(void* handle);  // by the rules of the legacy default stream, too; true for an unknown handle
bool is_capturing(void* handle);  // false also for an unknown handle

// A kernel that never ends: nothing queued on the stream from now on is executed. An event that was recorded
// last, with nothing behind it, comes behind the kernel: it marks what the caller is about to queue.
Error hold_stream(int device, void* handle);

// Blocks until everything queued at the time of the call on any stream of the device is done.
void drain_device(int device);

}  // namespace simgpu
