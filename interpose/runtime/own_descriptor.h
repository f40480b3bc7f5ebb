// A descriptor that dshang holds for long in a process that is not its own.
//
// The host may close every number it does not know (os.closerange) and be given the same number for a file or
// socket of its own.  Before a number is read from or closed, its file is compared with the one it was.
// Threads: one; close() also in a forked child, whatever its parent was doing.  Async-signal-safe.
#pragma once

#include <atomic>
#include <cstdint>

namespace dshang::interpose {

class OwnDescriptor {
 public:
  void take(int fd);  // takes it over in the place of what there was, which is forgotten
  void close();       // if it is still ours; there is none afterwards

  int number() const { return fd_.load(std::memory_order_acquire); }  // -1 = none
  bool is_still_ours() const;                                         // false also where there is none

 private:
  std::atomic<int> fd_{-1};
  std::uint64_t device_ = 0, inode_ = 0;
};

}  // namespace dshang::interpose
