// A job as PyTorch Flight Recorder dumps, one a rank, for the analysers that read those: torch's
// torch.distributed.flight_recorder and NVIDIA's nvidia-resiliency-ext.
//
// As a job has it that does not measure the starts of its kernels (TORCH_NCCL_ENABLE_TIMING unset, torch's
// default): what is not finished is "scheduled".  Groups are named "0", "1", ... in the order of their
// making, because one of the two takes the names for numbers.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/job/model.h"

namespace dshang::job {

class RecorderExport {
 public:
  explicit RecorderExport(const JobView& view);

  std::string dump_of(const RankView& rank);
  // What could not be written, one line each, after the dumps.
  std::vector<std::string> remarks() const;

 private:
  friend class RecorderRankWriter;
  struct Group {
    std::string name, description, ranks;        // "[0, 1]"
    std::map<std::int32_t, std::int32_t> index;  // of a position among the ranks
  };
  const JobView& view_;
  std::vector<Group> groups_;                    // by communicator of the view
  std::map<std::string, std::size_t> left_out_;  // operations without a name there: calls
  std::vector<std::string> unheard_;             // communicators of which not all ranks are known
};

}  // namespace dshang::job
