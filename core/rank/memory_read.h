// Reads this process's own memory where an address may be stale: a bad one is an answer, not a fault.
//
// process_vm_readv(2) on the process itself; where that is denied (seccomp), a write(2) to a pipe, which
// fails with EFAULT.  Threads: CheckedMemory objects are not shared; several may be used at the same time.
// Changes errno.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace dshang::rank {

// Memory that is known to be there: that of the calling thread's own frames, or of any frame while the GIL is
// held.
struct OwnMemory {
  bool read(std::uintptr_t from, void* to, std::size_t bytes) const {
    std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
    return true;
  }
};

class CheckedMemory {
 public:
  CheckedMemory() = default;
  ~CheckedMemory();
  CheckedMemory(const CheckedMemory&) = delete;
  CheckedMemory& operator=(const CheckedMemory&) = delete;

  // All or nothing.
  bool read(std::uintptr_t from, void* to, std::size_t bytes) const;

  // For tests: leave process_vm_readv out.
  static void deny_vm_read(bool deny);

 private:
  bool read_by_pipe(std::uintptr_t from, void* to, std::size_t bytes) const;
  mutable int pipe_[2] = {-1, -1};
};

template <typename Memory, typename T>
bool read_value(const Memory& memory, std::uintptr_t from, T* to) {
  return memory.read(from, to, sizeof *to);
}

}  // namespace dshang::rank
