// Attributes of a device: cudaDeviceGetAttribute and cuDeviceGetAttribute have one numbering.
#pragma once

namespace simgpu {

// The value of an attribute of a visible device; 0 for what is not listed, which is named with SIMGPU_LOG=1.
int device_attribute(int attribute, int device);

}  // namespace simgpu
