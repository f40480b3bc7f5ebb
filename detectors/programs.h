// The calls of ranks over all their communicators, side by side: most jobs run one program on every rank.
#pragma once

#include <vector>

#include "detectors/registry.h"

namespace dshang::detect {

// Those of `ranks` that first called something else than more than half of them, seen from a call that all
// have made; empty where no such half exists, or the ranks did not do the same before (stages of a pipeline).
// Communicators stand for each other in the order in which each rank came to them, sends and receives are
// left out, and a rank that is only behind has no say.
std::vector<Rank> first_apart(const JobView& view, const std::vector<Rank>& ranks);

}  // namespace dshang::detect
