// A monotonic clock that runs FAST_CLOCK times as fast as the real one from where it is: what dshang does after a minute is seen
// in seconds.
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *time) {
  static struct timespec begin;
  int result = (int)syscall(SYS_clock_gettime, clock, time);
  if (result != 0 || clock != CLOCK_MONOTONIC) return result;
  if (begin.tv_sec == 0) begin = *time;
  long fast = atol(getenv("FAST_CLOCK"));
  long long passed = (time->tv_sec - begin.tv_sec) * 1000000000ll + time->tv_nsec - begin.tv_nsec;
  passed *= fast;
  time->tv_sec = begin.tv_sec + passed / 1000000000;
  time->tv_nsec = begin.tv_nsec + passed % 1000000000;
  if (time->tv_nsec < 0) time->tv_nsec += 1000000000, --time->tv_sec;
  if (time->tv_nsec >= 1000000000) time->tv_nsec -= 1000000000, ++time->tv_sec;
  return result;
}
