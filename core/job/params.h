// What the analysis is told by its user (contract section 7).  Detectors read these and nothing else.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dshang::job {

struct Params {
  double stall_after = 30;       // seconds without progress after which a judged finding may be made
  bool python_stacks = true;     // call sites were recorded
  bool probe = true;
  double settle = 0.35;          // seconds without a new record after which a difference is explained
};

// From lines "DSHANG_X=value" (Journal::parameters); unknown ones are ignored, they belong to others.
Params params_from(const std::vector<std::string>& lines);

}  // namespace dshang::job
