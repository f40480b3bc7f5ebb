// What the monitor is told by the environment, and what it derives from it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dshang::monitor {

struct Settings {
  std::uint64_t job = 0;
  std::uint32_t user = 0;
  std::string host;
  std::string directory;                // absolute; DSHANG_DIR, or <where it was started>/dshang-<job>-<time>
  bool directory_given = false;         // by DSHANG_DIR
  std::string spool;                    // of the node-local copies: <spool_of_user>/<job>
  std::uint64_t poll_ns = 0;            // DSHANG_POLL
  std::uint64_t persist_ns = 0;         // DSHANG_PERSIST
  std::vector<std::string> parameters;  // all DSHANG_* as they are set, "NAME=value", sorted
  std::int32_t node = -1;               // number of this node as the launcher gave it, -1 = not known
};

// Reads environment, clock, host name and working directory of the process.
Settings read_settings(std::uint64_t job);

// 16 hexadecimal digits.
std::string job_text(std::uint64_t job);

// Where the node-local copies of a user's jobs are: ${TMPDIR:-/tmp}/dshang-<uid>, with a folder a job.
std::string spool_of_user(std::uint32_t user);

}  // namespace dshang::monitor
