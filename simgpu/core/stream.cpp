#include "simgpu/core/stream.h"

#include <cxxabi.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <thread>
#include <utility>

#include "simgpu/core/capture.h"
#include "simgpu/core/context.h"
#include "simgpu/core/log.h"
#include "simgpu/core/registry.h"
#include "simgpu/core/settings.h"
#include "simgpu/core/stream_object.h"

namespace simgpu {
namespace {

// How often a waiter looks whether the device has faulted meanwhile.
constexpr std::chrono::milliseconds kFaultPeriod{20};

Registry<Stream>& registry() {
  static Registry<Stream>* const kRegistry = new Registry<Stream>;  // outlives detached workers
  return *kRegistry;
}

// Streams whose handle is gone while they still had work.
Registry<Stream>& closing() {
  static Registry<Stream>* const kClosing = new Registry<Stream>;
  return *kClosing;
}

// Default streams are made at their first use.
struct DefaultStreams {
  std::mutex mutex;
  std::array<std::shared_ptr<Stream>, kMaxDevices> legacy;
};

DefaultStreams& default_streams() {
  static DefaultStreams* const kStreams = new DefaultStreams;
  return *kStreams;
}

std::shared_ptr<Stream> legacy_stream(int device, bool create) {
  std::lock_guard<std::mutex> lock(default_streams().mutex);
  std::shared_ptr<Stream>& stream = default_streams().legacy[static_cast<size_t>(device)];
  if (stream == nullptr && create) {
    stream = std::make_shared<Stream>(device, 0u, 0, true);
    registry().add(stream);
  }
  return stream;
}

std::shared_ptr<Stream> per_thread_stream(int device) {
  thread_local std::array<std::shared_ptr<Stream>, kMaxDevices> streams;
  std::shared_ptr<Stream>& stream = streams[static_cast<size_t>(device)];
  if (stream == nullptr) {
    stream = std::make_shared<Stream>(device, 0u, 0, false);
    registry().add(stream);
  }
  return stream;
}

// What an operation has to wait for by the rules of the legacy default stream: it and the blocking streams of
// its device take turns. Idle streams need no wait, so the usual answer is empty.
std::vector<StreamMark> legacy_order(Stream& stream) {
  std::vector<StreamMark> marks;
  const auto add_if_busy = [&marks](const std::shared_ptr<Stream>& other) {
    if (other != nullptr && !other->idle()) marks.push_back({other, other->position()});
  };
  if (stream.legacy) {
    for (const std::shared_ptr<Stream>& other : streams_of(stream.device)) {
      if (other->blocking() && !other->capturing) add_if_busy(other);
    }
  } else if (stream.blocking()) {
    add_if_busy(legacy_stream(stream.device, false));
  }
  return marks;
}

// An operation that fails for want of host memory takes its device with it: whoever waits for it is told.
void execute(const Operation& operation, int device) {
  if (device_fault(device) != kSuccess) return;
  try {
    operation();
#ifdef __GLIBCXX__  // with libc++ the end of a thread passes by handlers
  } catch (const abi::__forced_unwind&) {
    throw;  // the program's callback ended this thread
#endif
  } catch (...) {
    log(0, "an operation failed on device %d (out of host memory?); the device counts as faulted", device);
    fault_device(device, kLaunchFailure);
  }
}

}  // namespace

// --- the stream ----------------------------------------------------------------------------------

Stream::Stream(int on_device, unsigned stream_flags, int stream_priority, bool is_legacy)
    : device(on_device), flags(stream_flags), priority(stream_priority), legacy(is_legacy), id([] {
        static std::atomic<unsigned long long> next{1};
        return next++;
      }()) {}

void Stream::append(Operation operation, Run run) {
  std::unique_lock<std::mutex> lock(mutex_);
  recording_ = nullptr;
  if (run == Run::kInlineIfIdle && submitted_ == finished_) {
    ++submitted_;
    ++inline_running_;
    lock.unlock();
    {
      DeviceScope scope(device);
      execute(operation, device);
    }
    lock.lock();
    ++finished_;
    --inline_running_;
    lock.unlock();
    changed_.notify_all();
    return;
  }
  while (queue_.size() >= settings().queue_depth && device_fault(device) == kSuccess) {
    changed_.wait_for(lock, kFaultPeriod);
  }
  if (!worker_runs_) start_worker();
  ++submitted_;
  queue_.push_back(std::move(operation));
  lock.unlock();
  changed_.notify_all();
}

uint64_t Stream::position() {
  std::lock_guard<std::mutex> lock(mutex_);
  return submitted_;
}

bool Stream::reached(uint64_t position) {
  std::lock_guard<std::mutex> lock(mutex_);
  return finished_ >= position;
}

void Stream::wait_until(uint64_t position) {
  std::unique_lock<std::mutex> lock(mutex_);
  while (finished_ < position && device_fault(device) == kSuccess) changed_.wait_for(lock, kFaultPeriod);
}

bool Stream::idle() {
  std::lock_guard<std::mutex> lock(mutex_);
  return submitted_ == finished_;
}

void Stream::keep_recording(Recording recording) {
  std::lock_guard<std::mutex> lock(mutex_);
  recording_ = std::move(recording);
}

Stream::Recording Stream::take_recording() {
  std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(recording_, nullptr);
}

void Stream::close() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
}

// The mutex is held. Signals of the program are not for the worker: they stay with the threads that expect
// them.
void Stream::start_worker() {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread([self = shared_from_this()] { self->work(); }).detach();
    worker_runs_ = true;
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Stream::work() {
  char name[16];
  std::snprintf(name, sizeof name, "simstream%llu", id % 1000000);
  pthread_setname_np(pthread_self(), name);
  set_device(device);
  set_current_context(primary_context(device));
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(
        lock, [this] { return (!queue_.empty() && inline_running_ == 0) || (queue_.empty() && closed_); });
    if (queue_.empty()) break;
    Operation operation = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    changed_.notify_all();  // a place in the queue is free
    execute(operation, device);
    operation = nullptr;  // what it holds is released before it counts as done
    lock.lock();
    ++finished_;
    lock.unlock();
    changed_.notify_all();
    lock.lock();
  }
  lock.unlock();
  closing().remove(this);
}

// --- handles -------------------------------------------------------------------------------------

std::shared_ptr<Stream> find_stream_on(int device, void* handle) {
  const uintptr_t value = reinterpret_cast<uintptr_t>(handle);
  if (value <= kLegacyStream) return legacy_stream(device, true);
  if (value == kPerThreadStream) return per_thread_stream(device);
  return registry().find(handle);
}

std::shared_ptr<Stream> find_stream(void* handle) { return find_stream_on(device(), handle); }

void* create_stream(unsigned flags, int priority) {
  return registry().add(std::make_shared<Stream>(device(), flags, priority, false));
}

Error destroy_stream(void* handle) {
  if (reinterpret_cast<uintptr_t>(handle) <= kPerThreadStream) return kInvalidHandle;
  const std::shared_ptr<Stream> stream = registry().find(handle);
  if (stream == nullptr) return kInvalidHandle;
  if (stream->capturing) return kCaptureUnsupported;
  if (!stream->idle()) closing().add(stream);
  registry().remove(handle);
  stream->close();
  return kSuccess;
}

std::vector<std::shared_ptr<Stream>> streams_of(int device) {
  std::vector<std::shared_ptr<Stream>> streams = registry().all();
  for (std::shared_ptr<Stream>& stream : closing().all()) streams.push_back(std::move(stream));
  std::erase_if(streams,
                [device](const std::shared_ptr<Stream>& stream) { return stream->device != device; });
  return streams;
}

// --- operations ----------------------------------------------------------------------------------

Error enqueue_stream(Stream& stream, Operation operation, Run run) {
  if (stream.capturing) return capture_operation(stream, std::move(operation), run);
  if (stream.legacy) {
    if (Error error = check_legacy_use(stream, true)) return error;
  }
  std::vector<StreamMark> before = legacy_order(stream);
  if (!before.empty()) {
    stream.append(
        [before = std::move(before)] {
          for (const StreamMark& mark : before) wait_for(mark);
        },
        Run::kOnWorker);
  }
  stream.append(std::move(operation), run);
  return kSuccess;
}

Error enqueue_on(int device, void* handle, Operation operation, Run run) {
  const std::shared_ptr<Stream> stream = find_stream_on(device, handle);
  if (stream == nullptr) return kInvalidHandle;
  return enqueue_stream(*stream, std::move(operation), run);
}

Error enqueue(void* handle, Operation operation, Run run) {
  return enqueue_on(device(), handle, std::move(operation), run);
}

Error hold_stream(int device, void* handle) {
  const std::shared_ptr<Stream> stream = find_stream_on(device, handle);
  if (stream == nullptr) return kInvalidHandle;
  const Stream::Recording recording = stream->take_recording();
  const auto never_ends = [] {
    while (true) pause();
  };
  if (const Error error = enqueue_stream(*stream, never_ends, Run::kOnWorker)) return error;
  return recording ? enqueue_stream(*stream, recording(), Run::kInlineIfIdle) : kSuccess;
}

Error mark_stream(void* handle, StreamMark* mark) {
  std::shared_ptr<Stream> stream = find_stream(handle);
  if (stream == nullptr) return kInvalidHandle;
  mark->position = stream->position();
  mark->stream = std::move(stream);
  return kSuccess;
}

bool reached(const StreamMark& mark) { return mark.stream == nullptr || mark.stream->reached(mark.position); }

void wait_for(const StreamMark& mark) {
  if (mark.stream != nullptr) mark.stream->wait_until(mark.position);
}

bool belongs_to(int device, void* handle) {
  const std::shared_ptr<Stream> stream = find_stream_on(device, handle);
  return stream == nullptr || stream->device == device;
}

bool is_idle(void* handle) {
  const std::shared_ptr<Stream> stream = find_stream(handle);
  return stream == nullptr || (stream->idle() && legacy_order(*stream).empty());
}

bool is_capturing(void* handle) {
  const std::shared_ptr<Stream> stream = find_stream(handle);
  return stream != nullptr && stream->capturing;
}

void drain_device(int device) {
  std::vector<StreamMark> marks;
  for (const std::shared_ptr<Stream>& stream : streams_of(device))
    marks.push_back({stream, stream->position()});
  for (const StreamMark& mark : marks) wait_for(mark);
}

Error synchronize_stream(void* handle) {
  const std::shared_ptr<Stream> stream = find_stream(handle);
  if (stream == nullptr) return kInvalidHandle;
  if (Error error = check_stream_not_captured(*stream)) return error;
  if (Error error = check_unsafe_call()) return error;
  const StreamMark mark{stream, stream->position()};
  for (const StreamMark& other : legacy_order(*stream)) wait_for(other);
  wait_for(mark);
  return device_fault(stream->device);
}

Error query_stream(void* handle) {
  const std::shared_ptr<Stream> stream = find_stream(handle);
  if (stream == nullptr) return kInvalidHandle;
  if (Error error = check_stream_not_captured(*stream)) return error;
  if (Error error = check_unsafe_call()) return error;
  return stream->idle() && legacy_order(*stream).empty() ? kSuccess : kNotReady;
}

}  // namespace simgpu
