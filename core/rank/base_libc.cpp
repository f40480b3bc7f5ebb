#include "core/rank/base_libc.h"

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/rank/base_version.h"

extern "C" {
[[gnu::weak]] void* dshang_rank_dlsym(void* handle, const char* name);
[[gnu::weak]] int dshang_rank_pthread_create(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
[[gnu::weak]] int dshang_rank_pthread_detach(pthread_t);
[[gnu::weak]] pthread_t dshang_rank_pthread_self();
}
DSHANG_STANDS_FOR(dshang_rank_dlsym, dlsym);
DSHANG_STANDS_FOR(dshang_rank_pthread_create, pthread_create);
DSHANG_STANDS_FOR(dshang_rank_pthread_detach, pthread_detach);
DSHANG_STANDS_FOR(dshang_rank_pthread_self, pthread_self);

namespace dshang::rank {

void* find_symbol(const char* name) { return dshang_rank_dlsym ? dshang_rank_dlsym(nullptr, name) : nullptr; }

bool start_thread(void* (*body)(void*), void* argument) {
  if (!dshang_rank_pthread_create || !dshang_rank_pthread_detach) return false;
  // The new thread inherits the mask: the host's handlers must not run on a thread of ours.
  sigset_t all, before;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, &before);
  pthread_t thread;
  bool started = dshang_rank_pthread_create(&thread, nullptr, body, argument) == 0;
  sigprocmask(SIG_SETMASK, &before, nullptr);
  if (started) dshang_rank_pthread_detach(thread);
  return started;
}

std::uint64_t thread_handle() {
  return dshang_rank_pthread_self ? static_cast<std::uint64_t>(dshang_rank_pthread_self()) : 0;
}

std::uint32_t kernel_thread_id() { return static_cast<std::uint32_t>(syscall(SYS_gettid)); }

std::uint64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return std::uint64_t(t.tv_sec) * 1000000000u + std::uint64_t(t.tv_nsec);
}

void sleep_ms(unsigned ms) {
  timespec t{static_cast<time_t>(ms / 1000), static_cast<long>(ms % 1000) * 1000000};
  nanosleep(&t, nullptr);
}

}  // namespace dshang::rank
