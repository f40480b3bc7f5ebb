// What taking and giving back device memory cost a rank: time in the calls themselves, and from a request that
// was refused until the same one succeeded.
//
// The time is the host's: cudaFree waits for the device, so part of it may be work that would have run anyway.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "detectors/registry.h"

namespace dshang::detect {

// A step of one rank, or a second of a program without steps.
struct MemoryTime {
  std::int64_t step = job::kNoStep;
  double seconds = 0;        // of it: in the calls, and between them while one was tried again
  double retry_seconds = 0;  // of that: from refused to satisfied
  double whole = 0;          // how long the step was, 0 = not known
};

// Of this rank's records of memory, oldest first.
std::vector<MemoryTime> memory_time(const job::RankView& rank, const std::vector<const job::MemoryStep*>& steps);

struct MemoryTimes {
  std::size_t steps = 0;
  double seconds = 0, retry_seconds = 0, whole = 0;  // in all of them; `whole` of those whose length is known
  double of_known = 0;                               // seconds in the steps whose length is known
  std::size_t lengths = 0;                           // steps whose length is known
  double share() const { return whole > 0 ? of_known / whole : 0; }  // 0 = not known
};
MemoryTimes sum_of(const std::vector<MemoryTime>& times);

std::string short_time(double seconds);  // "0.25 s", "3.1 ms"

// "0.25 s of the 0.50 s of such a step"; without "of the ..." where the length is not known.  "" nothing recorded.
std::string time_a_step(const MemoryTimes& sum, const std::string& unit);

// "2.3 s in 9 steps (step 6 0.25 s, step 7 0.26 s, ...); of it 2 s from a refused request until the same one
// succeeded"; "" nothing recorded.
std::string time_by_step(const std::vector<MemoryTime>& times, const std::string& unit);

}  // namespace dshang::detect
