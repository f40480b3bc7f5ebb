#include "interpose/runtime/keeper.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/rank/base_libc.h"
#include "interpose/runtime/libc_base.h"

namespace dshang::interpose::keeper {
namespace {

constexpr std::size_t kStack = 64 * 1024;
constexpr std::uint64_t kStartTakes = 5000000000;  // ns, at most
constexpr unsigned kKeepers = 8;                   // a new one comes only with the next monitor

struct Keeper {
  int pid;  // 0 = free
  void* stack;
  int (*body)(void*);
  void* argument;
  std::atomic<std::uint32_t> ready;
};

Keeper keepers[kKeepers];

// libc's wrappers write errno, which the keeper shares with the helper thread.
long system_call(long number, long a = 0, long b = 0, long c = 0, long d = 0) {
#if defined(__x86_64__)
  long result;
  register long r10 asm("r10") = d;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
               : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = a;
  register long x1 asm("x1") = b;
  register long x2 asm("x2") = c;
  register long x3 asm("x3") = d;
  asm volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
  return x0;
#else
#error "system calls of this machine are not known"
#endif
}

long address(const void* of) { return reinterpret_cast<long>(of); }

int keep(void* argument) {
  Keeper& keeper = *static_cast<Keeper*>(argument);
  static const char kName[] = "dshang-keeper";
  system_call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
  system_call(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1);
  system_call(SYS_prctl, PR_SET_NAME, address(kName));
  system_call(SYS_setpgid, 0, 0);
  keeper.body(keeper.argument);
  keeper.ready.store(1, std::memory_order_release);
  system_call(SYS_futex, address(&keeper.ready), FUTEX_WAKE_PRIVATE, 1);
  while (system_call(SYS_wait4, -1, 0, __WALL) > 0) {
  }
  system_call(SYS_exit_group, 0);
  return 0;
}

bool has_ended(const Keeper& keeper) {
  long found = system_call(SYS_wait4, keeper.pid, 0, __WALL | WNOHANG);
  return found == keeper.pid || found == -ECHILD;
}

// The keeper uses this thread's thread-local memory while it runs the body: nothing of libc meanwhile.
int wait_for_body(Keeper& keeper) {
  const std::uint64_t begin_ns = rank::now_ns();
  while (!keeper.ready.load(std::memory_order_acquire)) {
    const timespec wait{0, 100000000};
    system_call(SYS_futex, address(&keeper.ready), FUTEX_WAIT_PRIVATE, 0, address(&wait));
    if (keeper.ready.load(std::memory_order_acquire)) break;
    if (system_call(SYS_kill, keeper.pid, 0) != 0 || rank::now_ns() - begin_ns > kStartTakes)
      return ETIMEDOUT;
  }
  return 0;
}

}  // namespace

bool is_needed() {
  int subreaper = 0;
  return libc::process_id() == 1 || (prctl(PR_GET_CHILD_SUBREAPER, &subreaper) == 0 && subreaper);
}

int run(int (*body)(void*), void* argument) {
  tidy();
  Keeper* keeper = nullptr;
  for (Keeper& one : keepers) {
    if (!one.pid) keeper = &one;
  }
  if (!keeper) return EAGAIN;
  void* stack = mmap(nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (stack == MAP_FAILED) return errno;
  keeper->stack = stack;
  keeper->body = body;
  keeper->argument = argument;
  keeper->ready.store(0, std::memory_order_relaxed);
  // No exit signal.  The descriptors are shared: a copy would hold the host's pipes open.  The working
  // directory is not.
  int pid = clone(keep, static_cast<char*>(stack) + kStack, CLONE_VM | CLONE_FILES, keeper);
  if (pid < 0) {
    int error = errno;
    munmap(stack, kStack);
    return error;
  }
  keeper->pid = pid;
  return wait_for_body(*keeper);
}

void tidy() {
  for (Keeper& keeper : keepers) {
    if (!keeper.pid || !has_ended(keeper)) continue;
    munmap(keeper.stack, kStack);
    keeper.pid = 0;
  }
}

// Their numbers may come to stand for children of its own.
void forget() {
  for (Keeper& keeper : keepers) {
    if (keeper.pid) munmap(keeper.stack, kStack);
    keeper.pid = 0;
  }
}

}  // namespace dshang::interpose::keeper
