// What a job would do: hosts that call, streams that run, collectives that complete when all members have
// come.
//
// The k-th collectives of all members of a communicator belong together, whatever they are; so do the n-th
// send from a to b and the n-th receive on b from a.  A stream takes its items one after the other.  A host
// goes on at once, or waits inside the call (Hosts::kInside), and in any case where the queue is full.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "program.h"

namespace dshang::schedules {

inline constexpr double kNever = std::numeric_limits<double>::infinity();

// What happens to a rank from outside, or on its GPU.
struct Mishap {
  enum class Kind { kNone, kDies, kStops, kBlocks, kWorks, kGpuStuck, kGpuLeft, kSlow };
  Kind kind = Kind::kNone;
  std::size_t at = 0;    // instruction before which it happens
  double time = kNever;  // kDies, kStops: when that is
  int code = 0;          // kDies: the signal, negative: the exit status
  double seconds = 0;    // kSlow: so much longer, each step
};

struct CallTimes {
  const Instruction* instruction;
  std::uint64_t number;  // on its communicator, or of its pair and direction
  std::uint64_t visits_before;
  std::int64_t step;
  int phase, module;                          // names, -1 = none
  std::uint32_t group;                        // ordinal, 0 = none
  double enter, closing;                      // closing: when the end of its group was called
  double returned = kNever, issued = kNever;  // issued: when that returned
  double reached = kNever, done = kNever;     // by the GPU
};

struct VisitTimes {
  const Instruction* instruction;
  double time;
  std::uint64_t calls_before;
  std::int64_t step;
  int phase, module;
};

// A host inside a function that it cannot leave before `end`.
struct Inside {
  double begin, end;
  int thread;
  const char* function;
};

struct GroupDepth {
  double time;
  int thread, depth;
};

struct RankTimes {
  std::vector<CallTimes> calls;
  std::vector<VisitTimes> visits;
  std::vector<Inside> inside;
  std::vector<GroupDepth> groups;
  double started = 0, ended = kNever;  // ended: normally
  double last = 0;                     // when the host did its last thing
  double mishap = kNever;              // when the mishap happened
};

struct History {
  std::vector<RankTimes> ranks;
};

// `mishaps`: one a rank, or empty.
History run(const Job& job, std::vector<Mishap> mishaps, Rng& rng);

}  // namespace dshang::schedules
