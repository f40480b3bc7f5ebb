// Why a request for device memory could not be satisfied, in words: what holds the memory, what was special
// about this step, and what would make it fit.
#pragma once

#include <string>
#include <vector>

#include "detectors/registry.h"

namespace dshang::detect {

struct AllocStory {
  std::string summary;                // ": ..." behind the sentence that names size and place; may be empty
  std::vector<std::string> evidence;  // with numbers, what holds most first
  std::vector<std::string> fix;       // most likely first
};

AllocStory story_of(const JobView& view, const job::RankView& rank, const job::AllocFailure& failure);

}  // namespace dshang::detect
