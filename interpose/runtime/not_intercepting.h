// Says in one line that this process has an NCCL communicator and yet no call of NCCL ever came by, after a
// minute of that.
//
// Seen by the names of the threads that NCCL itself starts with a communicator (proxy.cc: `NCCL Progress`,
// `NCCL Service`).  torch's own (`pt_nccl_watchdg`) say nothing: they run from init_process_group on, and the
// first collective may come much later.
// Threads: the helper thread.
#pragma once

#include <cstdint>

namespace dshang::interpose {

class NotIntercepting {
 public:
  explicit NotIntercepting(std::uint64_t now_ns) : next_look_ns_(now_ns) {}
  void look(std::uint64_t now_ns);

 private:
  std::uint64_t next_look_ns_;
  std::uint64_t since_ns_ = 0;
  bool over_ = false;
};

// Whether a thread of that kind runs in this process.
bool has_communicator();

}  // namespace dshang::interpose
