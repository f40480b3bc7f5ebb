#include "simgpu/core/event.h"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "simgpu/core/capture.h"
#include "simgpu/core/context.h"
#include "simgpu/core/registry.h"
#include "simgpu/core/stream_object.h"

namespace simgpu {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kFaultPeriod{20};

class Event {
 public:
  Event(int on_device, unsigned event_flags) : device(on_device), flags(event_flags) {}

  const int device;
  const unsigned flags;
  CapturedPlace captured;

  uint64_t next_record() {
    std::lock_guard<std::mutex> lock(mutex_);
    return ++recorded_;
  }

  uint64_t last_record() {
    std::lock_guard<std::mutex> lock(mutex_);
    return recorded_;
  }

  void complete(uint64_t record) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (completed_ < record) completed_ = record;
      at_ = Clock::now();
    }
    changed_.notify_all();
  }

  bool completed(uint64_t record) {
    std::lock_guard<std::mutex> lock(mutex_);
    return completed_ >= record;
  }

  bool complete() {
    std::lock_guard<std::mutex> lock(mutex_);
    return completed_ >= recorded_;
  }

  void wait(uint64_t record) {
    std::unique_lock<std::mutex> lock(mutex_);
    while (completed_ < record && device_fault(device) == kSuccess) changed_.wait_for(lock, kFaultPeriod);
  }

  Clock::time_point time() {
    std::lock_guard<std::mutex> lock(mutex_);
    return at_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t recorded_ = 0;
  uint64_t completed_ = 0;
  Clock::time_point at_;
};

Registry<Event>& registry() {
  static Registry<Event>* const kRegistry = new Registry<Event>;
  return *kRegistry;
}

Operation completion_of(const std::shared_ptr<Event>& event, uint64_t record) {
  return [event, record] { event->complete(record); };
}

}  // namespace

Error create_event(unsigned flags, void** handle) {
  constexpr unsigned kKnownFlags = 7;
  const bool timed_interprocess = (flags & kEventInterprocess) != 0 && (flags & kEventDisableTiming) == 0;
  if ((flags & ~kKnownFlags) != 0 || timed_interprocess) return kInvalidValue;
  *handle = registry().add(std::make_shared<Event>(device(), flags));
  return kSuccess;
}

Error destroy_event(void* handle) { return registry().remove(handle) != nullptr ? kSuccess : kInvalidHandle; }

Error record_event(void* handle, void* stream_handle, unsigned flags) {
  const std::shared_ptr<Event> event = registry().find(handle);
  const std::shared_ptr<Stream> stream = find_stream(stream_handle);
  if (event == nullptr || stream == nullptr || event->device != stream->device) return kInvalidHandle;
  if (stream->capturing && (flags & kEventExternal) == 0) return record_in_capture(*stream, &event->captured);
  if (stream->capturing) {
    const auto at_replay = [event] { event->complete(event->next_record()); };
    return enqueue_stream(*stream, at_replay, Run::kInlineIfIdle);
  }
  event->captured.set = false;
  const uint64_t record = event->next_record();
  const Error error = enqueue_stream(*stream, completion_of(event, record), Run::kInlineIfIdle);
  if (error != kSuccess) {
    event->complete(record);  // it was not recorded: nobody may wait for it
    return error;
  }
  stream->keep_recording([event] { return completion_of(event, event->next_record()); });
  return kSuccess;
}

Error query_event(void* handle) {
  const std::shared_ptr<Event> event = registry().find(handle);
  if (event == nullptr) return kInvalidHandle;
  if (event->captured.set) return refuse_captured_event(event->captured);
  if (Error error = check_unsafe_call()) return error;
  if (Error fault = device_fault(event->device)) return fault;
  return event->complete() ? kSuccess : kNotReady;
}

Error synchronize_event(void* handle) {
  const std::shared_ptr<Event> event = registry().find(handle);
  if (event == nullptr) return kInvalidHandle;
  if (event->captured.set) return refuse_captured_event(event->captured);
  if (Error error = check_unsafe_call()) return error;
  event->wait(event->last_record());
  return device_fault(event->device);
}

Error stream_wait_event(void* stream_handle, void* handle, unsigned flags) {
  const std::shared_ptr<Event> event = registry().find(handle);
  const std::shared_ptr<Stream> stream = find_stream(stream_handle);
  if (event == nullptr || stream == nullptr) return kInvalidHandle;
  if (event->captured.set) return wait_in_capture(*stream, event->captured);
  if (stream->capturing && (flags & kEventExternal) != 0) {
    const auto at_replay = [event] { event->wait(event->last_record()); };
    return enqueue_stream(*stream, at_replay, Run::kOnWorker);
  }
  const uint64_t record = event->last_record();
  stream->keep_recording(nullptr);
  if (record == 0) return kSuccess;
  if (stream->capturing) return refuse_uncaptured_wait(*stream);
  if (event->completed(record)) return kSuccess;
  return enqueue_stream(
      *stream, [event, record] { event->wait(record); }, Run::kOnWorker);
}

Error elapsed_time(float* milliseconds, void* start_handle, void* end_handle) {
  const std::shared_ptr<Event> start = registry().find(start_handle);
  const std::shared_ptr<Event> end = registry().find(end_handle);
  if (start == nullptr || end == nullptr || start->device != end->device) return kInvalidHandle;
  if (((start->flags | end->flags) & kEventDisableTiming) != 0) return kInvalidHandle;
  if (start->captured.set) return refuse_captured_event(start->captured);
  if (end->captured.set) return refuse_captured_event(end->captured);
  if (start->last_record() == 0 || end->last_record() == 0) return kInvalidHandle;
  if (!start->complete() || !end->complete()) return kNotReady;
  *milliseconds = std::chrono::duration<float, std::milli>(end->time() - start->time()).count();
  return kSuccess;
}

}  // namespace simgpu
