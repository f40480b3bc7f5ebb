// The text behind ncclGetLastError; it is also said on stderr.
#pragma once

#include "simgpu/nccl/abi.h"

namespace simgpu::nccl {

// Keeps the text as the last error of the process and returns `result`.
__attribute__((format(printf, 2, 3))) Result fail(Result result, const char* format, ...);

// The text; valid until the process ends, though a later error changes it.
const char* last_error_text();

}  // namespace simgpu::nccl
