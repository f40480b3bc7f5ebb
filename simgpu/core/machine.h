// The memory of the machine's devices, as all processes of a dry run share it.
//
// SIMGPU_MACHINE names a file that they have in common (`dshang dry-run` makes one that goes with it); without
// it a process has the machine for itself.  A process that was killed gives back what it had when the next one
// looks.  Devices are physical ones here.  Thread-safe, also between processes.
#pragma once

#include <cstddef>
#include <vector>

namespace simgpu::machine {

// False if so much is not free; nothing is taken then.
bool take(int device, size_t bytes);
void give(int device, size_t bytes);

size_t used(int device);  // by all processes

struct User {
  int pid;
  size_t bytes;
};
std::vector<User> users(int device);  // this process among them

}  // namespace simgpu::machine
