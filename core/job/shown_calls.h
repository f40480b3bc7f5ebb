// Which calls a page shows: a file for a thousand ranks must stay small, and what matters is around the
// parting and at the end.
#pragma once

#include <cstdint>
#include <vector>

#include "core/job/classes.h"

namespace dshang::job {

struct ShownRank {
  std::vector<std::uint64_t> calls;  // numbers in RankRecords::calls, ascending
  std::uint64_t left_out = 0;        // recorded, and not shown
};

inline constexpr std::size_t kCallsShown = 24'000;       // of all ranks together, about
inline constexpr std::size_t kCallsShownOfARank = 1500;  // at most, besides those of the lists

// By index into JobView::ranks: the newest calls of each, more of those that stand for a class or are
// suspected, and of these everything that the lists hold.
std::vector<ShownRank> choose_calls(const JobView& view, const Report& report,
                                    const std::vector<RankClass>& classes,
                                    const std::vector<CallList>& lists);

}  // namespace dshang::job
