// Says, on rank 0's node, which ranks of the job do not take part in the watching, and why where that is
// known.
//
// Threads: one at a time.  Folders of other nodes are read by the Worker, since they may be on a slow disk.
#pragma once

#include <cstdint>
#include <future>
#include <string>

#include "monitor/job_output.h"
#include "monitor/unheard.h"
#include "monitor/worker.h"

namespace dshang::monitor {

class UnheardWatch {
 public:
  struct State {
    Ranks heard;
    std::int32_t world_size = 0;
    std::uint64_t first_attach_ns = 0;
    std::string directory;  // of the job
  };

  // A rank of this node that did not load the library is named as soon as that is provable; those of whom
  // nothing is known once, a minute after the first rank came: imports take long on a cold disk.
  void round(const State& state, Worker& worker, JobOutput& output, std::uint64_t now);

 private:
  void look_here(const Ranks& missing, JobOutput& output);
  void look_elsewhere(const State& state, Ranks missing, Worker& worker, JobOutput& output);

  Ranks said_;  // did not load the library
  Ranks here_;  // have loaded it on this node, and may still wake
  std::uint64_t next_look_ns_ = 0;
  std::future<Ranks> elsewhere_;
  bool done_ = false;
};

}  // namespace dshang::monitor
