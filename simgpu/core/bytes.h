// Copying and filling of device memory. Kernels never write, so most pages of a simulated device were never
// touched; a plain memcpy would make them all real. These functions leave untouched pages untouched: that
// decides how many ranks fit on one machine.
#pragma once

#include <cstddef>

namespace simgpu {

// Copies like memmove; pages of the source that were never written become untouched pages of the destination
// where that is device memory, else zeros.
void copy_bytes(void* destination, const void* source, size_t bytes);

// Fills like memset; zeros give pages of device memory back.
void fill_bytes(void* destination, int value, size_t bytes);

// Whether any page of the range was ever written (true also if that cannot be found out, and for memory that
// is not the simulator's).
bool touched(const void* address, size_t bytes);

}  // namespace simgpu
