// When one rank's ZeRO-3 trace of modules broke, and what its steps cost: from the modes that the probe
// recorded, else from the consistency checks among the calls (core/job/trace_checks.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "detectors/registry.h"

namespace dshang::detect {

// One that happened in training; where training and evaluation take turns they are left out.
struct TraceBreak {
  std::int64_t step = job::kNoStep;
  std::uint64_t time_ns = 0;
  std::string got, expected;   // modules; expected "-" = the trace had ended; empty = not known
  job::PlaceId place = 0;      // where the module was entered
  job::SiteId gathers_at = 0;  // without the probe: of the first gather that a complete trace does not make
};

struct TraceStep {
  std::int64_t number = job::kNoStep;
  double seconds = 0;  // 0 = it is not over
  std::size_t gathers = 0;
  bool complete = true;  // the trace was, throughout
};

struct RankTrace {
  const job::RankView* rank = nullptr;
  std::vector<TraceBreak> breaks;
  std::vector<TraceStep> steps;
  bool from_calls = false;     // no mode was recorded
  bool counted_steps = false;  // nobody announced steps: they are counted from the calls, from 0
};

RankTrace trace_of(const JobView& view, const job::RankView& rank);

}  // namespace dshang::detect
