// The command that the user wants run at a hang (DSHANG_ON_HANG=exec:<command>).
//
// It runs under `/bin/sh -c` as it was written: nothing of a finding is put into its text, all of it is in
// the environment.
#pragma once

#include <string>
#include <vector>

#include "core/job/finding.h"

namespace dshang::monitor {

// The environment of the command: this process's own without LD_PRELOAD, and
//
//   DSHANG_REPORT          directory of the report, absolute
//   DSHANG_HANG_CLASS      class of the finding
//   DSHANG_HANG_SUMMARY    its sentence
//   DSHANG_HANG_CERTAINTY  proven, judged
//   DSHANG_HANG_SUSPECTS   ranks, separated by commas; may be empty
//   DSHANG_HANG_WAITING    the same
//
// as "NAME=value" each.
std::vector<std::string> command_environment(const job::Finding& finding, const std::string& directory);

// Starts the command and returns at once; false when no process could be made.
//
// It is in a session of its own and nobody's child here, with the job's file mode mask, the default signal
// actions, an empty standard input, and both outputs appended to `log` (dropped where that cannot be opened);
// it inherits no other descriptor.  After `limit_seconds` its process group gets SIGTERM, 5 s later SIGKILL,
// and a line in `log` says so.
bool run_command(const std::string& command, const std::vector<std::string>& environment,
                 const std::string& log, unsigned limit_seconds);

// Whether this process is the one that run_command() started to see to the command's end; that is then all
// that it has to do.
bool is_minder(int argc, char** argv);
[[noreturn]] void mind_command(char** argv);

}  // namespace dshang::monitor
