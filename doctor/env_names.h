// Names of environment variables that NCCL and torch read.
#pragma once

#include <string>

namespace dshang::doctor {

// The variable that `name` was meant to be, when nobody reads it and one that is read is near; else "".
std::string misspelt_variable(const std::string& name);

}  // namespace dshang::doctor
