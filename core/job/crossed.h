// Calls with equal arguments that are paired crosswise: one rank calls from A and then from B where the
// others call from B and then from A.  NCCL completes them, and mixes the data.
#pragma once

#include <optional>
#include <vector>

#include "core/job/model.h"

namespace dshang::job {

// Gathers and reduce-scatters of a module are made for it by a framework.
bool is_made_for_module(const RankRecords& records, const Call& call);

// Where a call of a process comes from; 0 = unknown.  Of gathers and reduce-scatters the module, where one is
// known: they are made for it by a framework.  Of all other calls the line of the program: the module that
// was visited last says nothing of them.
std::uint64_t origin_of(const Names& names, const RankRecords& records, const Call& call);

struct Crossing {
  Seq first = 0, last = 0;          // first and last call known to be paired with one from another place
  std::vector<const Call*> sides;   // of the suspects' and of the others' first member, at `first`
  std::vector<Rank> suspects;       // empty: a tie
  Rank told_of = -1, witness = -1;  // a member of each side
  std::size_t stretches = 0;        // steps, or runs of equal calls, in which they are crossed
  bool by_steps = false;            // the stretches are steps
};

// Linear in the number of calls.  Different places alone are healthy: in a stretch (a step; without steps a
// run of equal calls with others around it) both sides must have called from the same places as often, in
// another order, in at least one stretch; and never from only one of them.  Crossed and uncrossed stretches
// together must be at least three, so that two lines that stand for each other at random are not taken for
// this.
std::optional<Crossing> find_crossing(const JobView& view, const CommView& comm);

}  // namespace dshang::job
