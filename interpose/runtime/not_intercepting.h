// Says in one line that torch has an NCCL process group and yet no call of NCCL ever came by, after a minute
// of that.
//
// Seen by the names of the threads that torch and NCCL start for a group (ProcessGroupNCCL.cpp:
// `pt_nccl_watchdg`, `pt_nccl2_…`; NCCL's proxy: `NCCL Progress`, `NCCL Service`).
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
  std::uint64_t group_since_ns_ = 0;
  bool over_ = false;
};

// Whether a thread of that kind runs in this process.
bool has_nccl_group();

}  // namespace dshang::interpose
