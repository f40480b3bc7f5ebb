// The memory object that this process's flight memory lives in.
//
// Threads: make_flight_memory() runs once, on the thread that wakes the process.
// Failure: an empty FlightMemory with `why` set; nothing is left behind.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dshang::interpose {

struct FlightMemory {
  void* base = nullptr;  // zeroed, shared, not inherited by fork
  std::size_t bytes = 0;
  int fd = -1;          // close-on-exec, number above those a program is likely to expect
  bool sealed = false;  // false: a file in the temporary directory, because memfd_create was refused
  std::uint64_t device = 0,
                inode = 0;  // identity of fd: a host that closes descriptors it does not know may reuse it
  const char* why = nullptr;
};

// All bytes are reserved (no SIGBUS on a full disk) and the size is sealed.
FlightMemory make_flight_memory(std::size_t bytes);

// True if `fd` still is the memory's descriptor.  Async-signal-safe.
bool still_open(const FlightMemory& memory);

// Faults all pages in, so that the recorded path does not; for the helper thread.
void touch_flight_memory(const FlightMemory& memory);

// Moves a descriptor to a high number, close-on-exec; returns the new one, or the old one where that is not
// possible.
int move_up(int fd);

}  // namespace dshang::interpose
