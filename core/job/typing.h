// How far a mistyped word is from the one that was meant.
#pragma once

#include <cstddef>
#include <string_view>

namespace dshang::job {

inline constexpr std::size_t kAnyDistance = static_cast<std::size_t>(-1);

// Insertions, deletions and exchanges of letters that make `a` of `b`; of words that are further apart than
// `limit` only that: some number above it, without comparing all of them.
std::size_t typing_distance(std::string_view a, std::string_view b, std::size_t limit = kAnyDistance);

}  // namespace dshang::job
