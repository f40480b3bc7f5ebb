// Where a rank is that others wait for, in words.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "detectors/registry.h"

namespace dshang::detect {

// " at train.py:12 step", "" where it is not known.
std::string place(const JobView& view, job::SiteId site);

// The oldest call that the rank waits in, or waited in until its process ended; null = none.
const job::Call* oldest_outstanding(const job::RankView& rank);

// The newest Python stack of the main thread that is known, null = none.
const job::Stack* newest_stack(const job::RankView& rank);

// The function of torch.distributed in which the rank's main thread was seen after `since_ns`, "" none;
// absent = not known.  Without a call of NCCL it waits there for the others: in the store, or in a group on
// CPUs.
std::optional<std::string> torch_function(const JobView& view, const job::RankView& rank,
                                          std::uint64_t since_ns);

// "waits in call 2 of world (all_reduce at train.py:30 step)"; `rank` is an index into JobView::ranks.
std::string waits_in_text(const JobView& view, std::size_t rank, const job::Call& call);

// "waits in call ...", "has ended", "is on the host in data.py:7 next_batch and makes no progress"
std::string whereabouts(const JobView& view, std::size_t rank);

}  // namespace dshang::detect
