// The measured loop, in a library of its own, so that a C program and a Python one call it alike.
#include <time.h>

#include <cstdlib>

#include "interpose/symbols/types.h"

using namespace dshang::interpose::abi;

extern "C" Result ncclCommInitRank(CommOut, int, UniqueId, int);
extern "C" Result ncclAllReduce(const void*, void*, Count, DataType, RedOp, Comm, Stream);

namespace {

constexpr int kRounds = 201, kPasses = 2000;

double now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

template <typename Body>
double per_pass(Body body) {
  double begin = now_ns();
  for (int i = 0; i < kPasses; ++i) body();
  return (now_ns() - begin) / kPasses;
}

int by_value(const void* a, const void* b) {
  double x = *static_cast<const double*>(a), y = *static_cast<const double*>(b);
  return (x > y) - (x < y);
}
double median(double* values) {
  std::qsort(values, kRounds, sizeof values[0], by_value);
  return values[kRounds / 2];
}

}  // namespace

// Medians over rounds that take turns, so that a slow moment of the machine falls on both: nanoseconds of one
// ncclAllReduce, of one malloc and free of 64 bytes, and of one reading of the clock.
extern "C" __attribute__((visibility("default"))) void measure_calls(double* call, double* malloc_free, double* clock) {
  static double calls[kRounds], pairs[kRounds], clocks[kRounds];
  Comm comm = nullptr;
  UniqueId id{};
  ncclCommInitRank(&comm, 1, id, 0);
  for (int round = 0; round < kRounds; ++round) {
    calls[round] = per_pass([&] { ncclAllReduce(nullptr, nullptr, Count{1024}, DataType{7}, RedOp{0}, comm, nullptr); });
    pairs[round] = per_pass([] {
      void* block = std::malloc(64);
      __asm__ volatile("" : : "r"(block) : "memory");
      std::free(block);
    });
    clocks[round] = per_pass([] { now_ns(); });
  }
  *call = median(calls);
  *malloc_free = median(pairs);
  *clock = median(clocks);
}
