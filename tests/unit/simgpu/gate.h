// A host function that holds a stream up until the test lets it go.
#pragma once

#include <condition_variable>
#include <mutex>

#include "api.h"

class Gate {
 public:
  ~Gate() { open(); }

  // Queues the gate: what comes behind it waits.
  int close(Handle stream) { return cudaLaunchHostFunc(stream, wait, this); }

  void open() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      open_ = true;
    }
    changed_.notify_all();
  }

 private:
  static void wait(void* gate) {
    Gate* self = static_cast<Gate*>(gate);
    std::unique_lock<std::mutex> lock(self->mutex_);
    self->changed_.wait(lock, [self] { return self->open_; });
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

// A stream for one test.
class TestStream {
 public:
  explicit TestStream(unsigned flags = kNonBlocking) { cudaStreamCreateWithFlags(&handle_, flags); }
  ~TestStream() { cudaStreamDestroy(handle_); }
  TestStream(const TestStream&) = delete;
  TestStream& operator=(const TestStream&) = delete;

  operator Handle() const { return handle_; }

 private:
  Handle handle_ = nullptr;
};

class TestEvent {
 public:
  explicit TestEvent(unsigned flags = 2) { cudaEventCreateWithFlags(&handle_, flags); }
  ~TestEvent() { cudaEventDestroy(handle_); }
  TestEvent(const TestEvent&) = delete;
  TestEvent& operator=(const TestEvent&) = delete;

  operator Handle() const { return handle_; }

 private:
  Handle handle_ = nullptr;
};
