// Decodes flight memory into RankRecords, again and again while the process writes it.
//
// What a caller may rely on, whatever the memory holds: op < ops.size() and comm < comms.size() in every call
// that is not torn; enumerators are known ones; names are printable UTF-8.  Not checked, because the process
// itself may not know: `thread` may be >= threads.size(), visits_before and calls_before may lie outside the
// windows.  A torn call or visit carries nothing, a torn record of another kind has time_ns 0; one that was
// still being written becomes whole in a later update.
#pragma once

#include <cstdint>
#include <vector>

#include "core/flight/reader.h"
#include "core/job/load_names.h"
#include "core/job/names.h"
#include "core/job/records.h"

namespace dshang::job {

// What update() remembers between two looks at one process.  Nothing in it is for others.
struct LoadState {
  struct OpenCall {
    std::uint64_t n;
    bool was_unmarked;  // had returned without marks when last seen
  };
  // A call or visit whose names were not there when it was loaded: raw ids, 0 = nothing to do.
  struct Unnamed {
    std::uint64_t n;
    std::uint32_t site, module, phase, detail;
    bool visit;
  };
  KnownIds ids;
  std::vector<OpenCall> open_calls;  // may still change
  std::size_t open_cursor = 0;
  std::vector<std::uint64_t> open_visits, open_memory_steps, open_facts, open_exceptions, open_stacks;
  std::vector<Unnamed> unnamed;
  std::size_t unnamed_limit = 65536;  // prune when there are more
};

// Brings `records` up to what the process has recorded by now; the windows then hold what the rings hold. The
// same records, memory and state belong together for the life of a process; names may be shared by all of a
// job. Returns whether anything changed, heartbeats (poll_ns) aside. Cost: proportional to what is new and
// what is still running, bounded by the size of the rings.
bool update(RankRecords& records, const flight::Reader& reader, Names& names, LoadState& state);

// Applies what the process recorded of its environment (facts env.*) to the way it is read: DSHANG_SITE_SKIP.
// update() and parse() do it themselves.
void apply_environment_facts(const RankRecords& records, Names& names);

}  // namespace dshang::job
