#include "monitor/worker.h"

#include <signal.h>

#include <exception>
#include <utility>

namespace dshang::monitor {

Worker::Worker() : thread_([this] { run(); }) {}

Worker::~Worker() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void Worker::post(std::function<void()> task) {
  {
    std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    ++unfinished_;
  }
  wake_.notify_one();
}

std::size_t Worker::waiting() {
  std::lock_guard lock(mutex_);
  return unfinished_;
}

bool Worker::drain(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  return idle_.wait_for(lock, patience, [this] { return unfinished_ == 0; });
}

std::vector<std::string> Worker::take_trouble() {
  std::lock_guard lock(mutex_);
  return std::exchange(trouble_, {});
}

void Worker::run() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);  // signals are the main thread's
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stop_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    auto task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    std::string trouble;
    try {
      task();
    } catch (const std::exception& error) {
      trouble = error.what();
    }
    lock.lock();
    if (!trouble.empty()) trouble_.push_back(std::move(trouble));
    if (--unfinished_ == 0) idle_.notify_all();
  }
}

}  // namespace dshang::monitor
