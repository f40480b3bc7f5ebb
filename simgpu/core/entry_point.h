// Functions of the driver by name.
#pragma once

namespace simgpu {

// The newest version of a driver function ("cuMemGetInfo" gives cuMemGetInfo_v2) as the program's loader sees
// it: a wrapper that was preloaded in front of this library is found first. nullptr: there is none.
void* driver_entry_point(const char* name);

}  // namespace simgpu
