// What was known at an earlier moment: records and journal without what came later.
//
// Not restored, because nothing dates them: live memory counters, and what rings had overwritten by the end.
#pragma once

#include <cstdint>

#include "core/job/job.h"

namespace dshang::monitor {

job::RankRecords as_of(const job::RankRecords& records, std::uint64_t moment);
job::ProcessJournal as_of(const job::ProcessJournal& journal, std::uint64_t moment);

// The newest time in what was recorded of a process; 0 = there is none.
std::uint64_t newest_time(const job::RankRecords& records);
std::uint64_t newest_time(const job::ProcessJournal& journal);

}  // namespace dshang::monitor
