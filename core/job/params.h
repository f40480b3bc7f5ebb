// What the analysis is told by its user (contract section 7).  Detectors read these and nothing else.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dshang::job {

struct Params {
  double stall_after = 30;    // seconds without progress after which a judged finding may be made
  bool python_stacks = true;  // call sites were recorded
  bool probe = true;
  bool memory_headroom_is_percent = true;
  double memory_headroom = 5;  // percent of the device, or bytes, that a step should leave
  double settle = 0.35;        // seconds for which a rank must have waited elsewhere before that is a difference

  std::uint64_t memory_headroom_of(std::uint64_t device_bytes) const {
    return static_cast<std::uint64_t>(memory_headroom_is_percent
                                          ? memory_headroom / 100 * static_cast<double>(device_bytes)
                                          : memory_headroom);
  }
};

// From lines "DSHANG_X=value" (Journal::parameters); unknown ones are ignored, they belong to others.
Params params_from(const std::vector<std::string>& lines);

}  // namespace dshang::job
