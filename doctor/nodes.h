// The other nodes, as they answered over ssh or were told: each as facts of its own.
#pragma once

#include "doctor/facts.h"

namespace dshang::doctor {

// What a node says of something that it does not have.
inline constexpr const char* kNone = "none";

// The facts of the job with this node's machine and versions in the place of this one's.
Facts facts_of_node(const Facts& facts, const Node& node);

// "a, b" or "a, b, c, d and 60 more".
std::string node_names(const std::vector<std::string>& names);

}  // namespace dshang::doctor
