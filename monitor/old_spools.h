// Node-local copies that were left behind: rank and monitor of a job died together, and nobody asked for a
// report.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace dshang::monitor {

inline constexpr std::chrono::hours kSpoolIsOld{7 * 24};

// Removes folders <user_directory>/<job> in which nothing was written for kSpoolIsOld and whose job has no
// monitor; at most 16 of them, within two seconds.  Whatever else lies there stays, and nothing is removed
// from a directory that is not `user`'s alone.  Returns how many were removed.
int remove_old_spools(const std::string& user_directory, std::uint32_t user);

}  // namespace dshang::monitor
