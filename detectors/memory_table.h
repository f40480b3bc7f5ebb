// The memory that each rank of a job needed, as lines of a table: how a dry run ends.
#pragma once

#include <string>
#include <vector>

#include "detectors/registry.h"

namespace dshang::detect {

// `gpu` names the device that was simulated.  Empty where no rank has a whole step or a failure on record.
std::vector<std::string> memory_table(const JobView& view, const std::string& gpu);

}  // namespace dshang::detect
