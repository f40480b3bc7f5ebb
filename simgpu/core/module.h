// Modules and libraries of device code loaded at run time (Triton, NVRTC). Code is not looked at; a kernel is
// its name.
#pragma once

#include "simgpu/core/abi.h"

namespace simgpu {

void* load_module();
Error unload_module(void* module);
Error module_kernel(void* module, const char* name, void** kernel);  // valid as long as the module

const char* kernel_name(const void* kernel);  // of one that came from a module

}  // namespace simgpu
