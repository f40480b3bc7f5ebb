#include "core/job/shifted.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/job/crossed.h"

namespace dshang::job {
namespace {

using Place = std::uint64_t;

constexpr std::size_t kBefore = 16;  // calls that stood beside their like before
constexpr std::size_t kBehind = 32;  // calls that go on shifted
constexpr std::size_t kPlaces = 3;   // that are paired with each other in a chain
constexpr std::size_t kLongestShift = 64;
constexpr std::size_t kCandidates = 8;  // places at which a shift is tried

std::vector<Place> places_of(const JobView& view, const Member& member) {
  std::vector<Place> places;
  places.reserve(member.calls.size());
  for (const Call* call : member.calls)
    places.push_back(origin_of(view.names(), view.ranks[member.process].records(), *call));
  return places;
}

// Calls from `at` on that `ahead` makes `by` calls earlier than `behind`, up to the first that is not.
std::size_t length_of_shift(const std::vector<Place>& ahead, std::size_t at_a,
                            const std::vector<Place>& behind, std::size_t at_b, std::size_t by) {
  std::size_t n = 0;
  while (at_a + n < ahead.size() && at_b + n + by < behind.size() && ahead[at_a + n] &&
         ahead[at_a + n] == behind[at_b + n + by])
    ++n;
  return n;
}

struct Found {
  std::size_t at = 0, length = 0, by = 0, mispaired = 0;  // `at`: into the common stretch
  bool member_ahead = false;
};

// Where calls are shifted, most of them meet one from another place, and each place meets its neighbour,
// which meets the next.  Lines that stand for each other meet in pairs, and the calls around them meet their
// like.
bool is_mispaired(const Found& found, const std::vector<std::pair<Place, Place>>& pairs) {
  if (2 * found.mispaired < found.length) return false;
  std::map<Place, std::set<Place>> met;
  for (const auto& [mine, theirs] : pairs) met[mine].insert(theirs), met[theirs].insert(mine);
  std::size_t chained = 0;
  for (const auto& [place, others] : met) chained += others.size() > 1;
  return chained >= kPlaces;
}

std::optional<Found> shift_between(const std::vector<Place>& reference, std::size_t from_r,
                                   const std::vector<Place>& member, std::size_t from_m, std::size_t count) {
  std::size_t alike = 0, tried = 0;
  std::set<Place> seen;
  for (std::size_t i = 0; i < count && tried < kCandidates; ++i) {
    Place a = reference[from_r + i], b = member[from_m + i];
    if (!a || !b) continue;
    if (a == b) {
      ++alike;
      if (seen.size() < kPlaces) seen.insert(a);
      continue;
    }
    if (alike < kBefore || seen.size() < kPlaces) {
      alike = 0;
      continue;
    }
    ++tried;
    Found best;
    for (std::size_t by = 1; by <= kLongestShift; ++by) {
      std::size_t ahead = length_of_shift(member, from_m + i, reference, from_r + i, by);
      std::size_t behind = length_of_shift(reference, from_r + i, member, from_m + i, by);
      if (std::max(ahead, behind) > best.length) best = {i, std::max(ahead, behind), by, 0, ahead >= behind};
      if (best.length + best.by + i >= count) break;  // as far as anything is known
    }
    std::vector<std::pair<Place, Place>> pairs;
    for (std::size_t n = 0; n < best.length && i + n < count; ++n) {
      Place theirs = reference[from_r + i + n], mine = member[from_m + i + n];
      best.mispaired += mine != theirs;
      if (mine != theirs && pairs.size() < kBehind) pairs.emplace_back(mine, theirs);
    }
    if (best.length >= kBehind && is_mispaired(best, pairs)) return best;
    alike = 0;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Shift> find_shift(const JobView& view, const CommView& comm) {
  if (comm.members.size() < 2) return std::nullopt;
  const Member& reference = comm.members.front();
  std::vector<Place> places = places_of(view, reference);
  std::optional<Shift> shift;
  std::vector<Rank> shifted;
  for (const Member& member : comm.members) {
    if (&member == &reference) continue;
    Seq from = std::max(reference.first, member.first), to = std::min(reference.last(), member.last());
    if (from > to || to - from < kBefore + kBehind) continue;
    std::optional<Found> found = shift_between(places, from - reference.first, places_of(view, member),
                                               from - member.first, to - from + 1);
    if (!found) continue;
    shifted.push_back(member.rank);
    if (shift && shift->first <= from + found->at) continue;
    shift = Shift{from + found->at,
                  std::min<Seq>(from + found->at + found->length - 1, to),
                  found->by,
                  found->mispaired,
                  {},
                  member.rank,
                  reference.rank,
                  found->member_ahead};
  }
  if (!shift) return std::nullopt;
  std::size_t all = comm.members.size();
  if (2 * shifted.size() < all) {
    shift->suspects = shifted;
  } else if (2 * shifted.size() > all) {  // the reference is the odd one, and those that agree with it
    for (const Member& member : comm.members) {
      if (!std::count(shifted.begin(), shifted.end(), member.rank)) shift->suspects.push_back(member.rank);
    }
    std::swap(shift->told_of, shift->witness);
    shift->ahead = !shift->ahead;
  }
  return shift;
}

}  // namespace dshang::job
