// Functions of CUDA's libraries that the simulated GPU does not have. Each returns its library's code for
// "not supported" and is named once on stderr. The names stand in the lists beside this file, one a library;
// the functions are generated from them when the project is configured. They are weak: a function of the same
// name in another file takes their place, so a list may name what is implemented, too.
#pragma once

#include "simgpu/core/abi.h"

namespace simgpu {

// What a stub returns.
long unsupported_call(const char* name, long code);

// The same for a function of the CUDA runtime, which keeps its error.
long unsupported_runtime_call(const char* name, long code);

}  // namespace simgpu
