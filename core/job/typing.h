// How far a mistyped word is from the one that was meant.
#pragma once

#include <cstddef>
#include <string_view>

namespace dshang::job {

// Insertions, deletions and exchanges of letters that make `a` of `b`.
std::size_t typing_distance(std::string_view a, std::string_view b);

}  // namespace dshang::job
