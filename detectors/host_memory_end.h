// A rank that the kernel's OOM killer ended: what host memory it had, and what to do about it.
#pragma once

#include <string>
#include <vector>

#include "detectors/ended.h"

namespace dshang::detect {

std::vector<std::string> evidence_of_host_memory(const JobView& view, const Ended& ended);
std::vector<std::string> fixes_of_host_memory(const JobView& view, const Ended& ended);

}  // namespace dshang::detect
