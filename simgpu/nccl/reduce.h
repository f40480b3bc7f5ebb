// The arithmetic of reductions.
#pragma once

#include <cstddef>

namespace simgpu::nccl {

// result[i] = sources[0][i] op ... op sources[n-1][i], for `elements` elements of `type`. `op` is kSum..kAvg
// (an operation made by ncclRedOpCreatePreMulSum is a sum here: see multiply). Integers wrap; floats are
// computed in float (64-bit: double) and rounded once. The result may be one of the sources.
void reduce(char* result, const char* const* sources, int n, size_t elements, int type, int op);

// values[i] *= scalar, which is an element of the same type.
void multiply(char* values, const char* scalar, size_t elements, int type);

}  // namespace simgpu::nccl
