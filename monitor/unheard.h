// Ranks of the job that did not register here: did they not load the library, or are they on another node?
//
// LD_PRELOAD counts when a program starts.  A process that has a rank's number, has loaded torch or NCCL or
// CUDA and has not loaded the library will therefore never record anything; a process that has loaded neither
// may still be a wrapper, and one that has the library may be about to wake.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace dshang::monitor {

using Ranks = std::set<std::int32_t>;

// What /proc says of one process.
struct RankProcess {
  std::int32_t pid = 0, rank = -1;
  bool library = false;    // libdshang.so is mapped
  bool framework = false;  // torch, NCCL or CUDA is
  std::string preload;     // its LD_PRELOAD
};

// The rank that an environment (as in /proc/<pid>/environ) states, if the variables that tell jobs apart are
// those of `own`; -1 otherwise.
std::int32_t rank_of_environment(const std::string& environment,
                                 const std::map<std::string, std::string>& own);
// Whether a line of /proc/<pid>/maps names the library, or a framework.
RankProcess of_maps(const std::string& maps);

// Processes of this user on this node that have one of the ranks and belong to the job of this process's
// environment.
std::vector<RankProcess> processes_of(const Ranks& ranks);

// Ranks that provably did not load the library, each with a process of theirs.
std::map<std::int32_t, RankProcess> without_library(const std::vector<RankProcess>& processes);
// Ranks with a process that has loaded it.
Ranks with_library(const std::vector<RankProcess>& processes);

// "rank 1 (process 4711, no LD_PRELOAD) did not load libdshang.so: ..."
std::string text_of(const std::map<std::int32_t, RankProcess>& without);
std::string text_of_unheard(const Ranks& ranks, const std::string& directory);

// What monitors of other nodes wrote into <directory>/node-*/attempt-<newest>/flight/ranks.
Ranks ranks_of_other_nodes(const std::string& directory);
std::string text_of_ranks(const Ranks& ranks);

}  // namespace dshang::monitor
