// Features that need something that is not set; ways in which processes end.
#include "explain/entry.h"

namespace dshang::explain {

const Entries& process_entries() {
  static const Entries entries = {
      {"X-25",
       Severity::kWillFail,
       "NVMe offload without nvme_path",
       {{R"(expected str, bytes or os\.PathLike object, not NoneType)", R"(deepspeed/)"},
        {R"("nvme_path" in DeepSpeed Config cannot be None)"}},
       "DeepSpeed 0.10-0.19.8",
       "`\"device\": \"nvme\"` needs a path",
       "Add `\"nvme_path\": \"/mnt/nvme0\"`.",
       "DeepSpeed, runtime/zero/stage3.py"},
      {"E-15",
       Severity::kWillFail,
       "the job was stopped from outside",
       {{R"(slurmstepd: error: \*\*\* (JOB|STEP) \S+ ON \S+ CANCELLED AT)"},
        {R"(DUE TO TIME LIMIT)"},
        {R"(DUE TO PREEMPTION)"}},
       "Slurm",
       "time limit, pre-emption or scancel",
       "Ask for more time, or save before the limit (--signal).",
       "Slurm",
       Role::kConsequence},
  };
  return entries;
}

}  // namespace dshang::explain
