#include "simgpu/nccl/bell.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace simgpu::nccl {
namespace {

constexpr int kYields = 20;  // most waits are short: the peer runs on the next core
constexpr timespec kLongest{0, 100 * 1000 * 1000};

long futex(std::atomic<uint32_t>& word, int operation, uint32_t value, const timespec* timeout) {
  return syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), operation, value, timeout, nullptr, 0);
}

}  // namespace

void Bell::ring() {
  header_.bell.fetch_add(1);
  // A sleeper that was killed is counted for ever; that costs a system call, no more.
  if (header_.sleepers.load() != 0) futex(header_.bell, FUTEX_WAKE, INT_MAX, nullptr);
}

void Bell::wait(uint32_t seen) {
  for (int i = 0; i < kYields; ++i) {
    if (header_.bell.load() != seen) return;
    sched_yield();
  }
  header_.sleepers.fetch_add(1);
  futex(header_.bell, FUTEX_WAIT, seen, &kLongest);
  header_.sleepers.fetch_sub(1);
}

}  // namespace simgpu::nccl
