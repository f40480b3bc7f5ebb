// How a process ended, asked of everyone who may know (DESIGN.md section 6, Endings).
#pragma once

#include <cstdint>
#include <optional>

#include "core/job/journal.h"
#include "core/job/records.h"

namespace dshang::monitor {

// The wait status that PIDFD_GET_INFO gives of a process that was reaped (Linux 6.15;
// include/uapi/linux/pidfd.h); absent on older kernels and before the reap.
std::optional<std::int32_t> reaped_status(int pidfd);

// The wait status in /proc/<pid>/stat while the process is a zombie.  The kernel writes 0 where it may not be
// read.
std::optional<std::int32_t> zombie_status(std::int32_t pid, std::uint64_t start_ticks);

// What follows from a record in flight memory and a wait status.  The wait status is the kernel's last word;
// a record may have been left by a signal that the program survived.  A zombie's status 0 may mean "not
// readable" and yields to a record.
job::Death death_of(flight::EndingKind kind, std::int32_t code, std::optional<std::int32_t> zombie,
                    std::optional<std::int32_t> reaped);

// `pidfd` may be -1.  `records` are up to date.
job::Death read_death(const job::RankRecords& records, std::int32_t pid, int pidfd);

}  // namespace dshang::monitor
