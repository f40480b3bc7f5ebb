// Where the members of a communicator first did something for different purposes.
#pragma once

#include <optional>
#include <vector>

#include "core/job/divergence.h"

namespace dshang::job {

struct Parting {
  std::optional<Seq> origin;  // first call made after the purposes parted; nullopt = they do not part before
                              // the visible call, or no purposes are known
  bool purposes_known = false;
  std::vector<Rank>
      suspects;  // the minority, or those that depart from their own earlier steps; empty = a tie
  bool by_own_history = false;  // no majority: the suspects depart from their own earlier steps
  Rank witness = -1, told_of = -1;
  Story story;
};

// Decided on module visits where they part; else on the calls.
Parting find_parting(const JobView& view, const CommView& comm, const Visible& visible);

// A group of members with an equal next token; `key` 0 = they have none.
struct Camp {
  std::uint64_t key = 0;
  std::vector<std::size_t> members;  // indices into the sequences they were made from
};

// Which camps depart: all but a strict majority of those that have a token; without a majority those that do
// not go on as their own history suggests while another camp does.  Empty = a tie.
std::vector<std::size_t> departing(const std::vector<Camp>& camps, const std::vector<bool>& follows_history);

}  // namespace dshang::job
