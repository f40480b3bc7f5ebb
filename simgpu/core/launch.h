// Kernel launches. A kernel does nothing: what it takes is its place in the stream.
#pragma once

#include "simgpu/core/abi.h"

namespace simgpu {

Error launch_kernel(void* stream);

// How many blocks of so many threads a multiprocessor holds.
int blocks_per_multiprocessor(int threads_per_block);

}  // namespace simgpu
