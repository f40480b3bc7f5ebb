// The stream behind a handle. stream.h is what other rooms use; this is for the simulator's runtime and
// driver.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "simgpu/core/abi.h"
#include "simgpu/core/stream.h"

namespace simgpu {

// cudaStreamNonBlocking: such a stream does not wait for the legacy default stream, nor that one for it.
inline constexpr unsigned kStreamNonBlocking = 1;

// The handles that are no addresses: cudaStreamLegacy, cudaStreamPerThread (driver_types.h). 0 means legacy.
inline constexpr uintptr_t kLegacyStream = 1;
inline constexpr uintptr_t kPerThreadStream = 2;

class Stream : public std::enable_shared_from_this<Stream> {
 public:
  Stream(int device, unsigned flags, int priority, bool legacy);

  const int device;
  const unsigned flags;
  const int priority;
  const bool legacy;
  const unsigned long long id;

  // Set while the stream is part of a capture. Written under the capture mutex (capture.h).
  std::atomic<bool> capturing{false};

  bool blocking() const { return !legacy && (flags & kStreamNonBlocking) == 0; }

  // Appends to the queue itself: no capture, no legacy rules.
  void append(Operation operation, Run run);

  uint64_t position();  // of the last operation appended; 0: none yet
  bool reached(uint64_t position);
  void wait_until(uint64_t position);  // returns early when the device faults
  bool idle();

  // What records the event of the last operation anew; gone with the next operation.
  using Recording = std::function<Operation()>;
  void keep_recording(Recording recording);
  Recording take_recording();

  // The handle is gone: the worker ends when the queue is empty.
  void close();

 private:
  void start_worker();
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Operation> queue_;
  Recording recording_;
  uint64_t submitted_ = 0;  // operations appended so far, those run in the caller included
  uint64_t finished_ = 0;
  int inline_running_ = 0;
  bool worker_runs_ = false;
  bool closed_ = false;
};

// The stream of a handle (see stream.h); nullptr: invalid.
std::shared_ptr<Stream> find_stream(void* handle);
std::shared_ptr<Stream> find_stream_on(int device, void* handle);

void* create_stream(unsigned flags, int priority);  // on the current device
Error destroy_stream(void* handle);
Error synchronize_stream(void* handle);  // with the rules of capture; as cudaStreamSynchronize
Error query_stream(void* handle);        // kSuccess or kNotReady

// All streams of a device that are in use, also those whose handle is gone while they still have work.
std::vector<std::shared_ptr<Stream>> streams_of(int device);

Error enqueue_stream(Stream& stream, Operation operation, Run run);

}  // namespace simgpu
