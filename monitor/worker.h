// A thread for everything that touches a disk: a network file system that hangs must not keep the monitor
// from seeing ranks end and from closing the job's stderr.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace dshang::monitor {

class Worker {
 public:
  Worker();
  // Waits for what is being done; ask drain() first.
  ~Worker();

  // Tasks run one after the other, in this order.  What a task throws is kept as trouble.
  void post(std::function<void()> task);
  // Tasks not finished yet.
  std::size_t waiting();
  // True when everything posted is done within `patience`.
  bool drain(std::chrono::milliseconds patience);
  // Messages of tasks that failed since the last call.
  std::vector<std::string> take_trouble();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable wake_, idle_;
  std::deque<std::function<void()>> tasks_;
  std::vector<std::string> trouble_;
  std::size_t unfinished_ = 0;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace dshang::monitor
