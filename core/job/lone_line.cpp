#include "core/job/lone_line.h"

#include <algorithm>
#include <utility>

namespace dshang::job {
namespace {

// Two members that call from different places at k; nullptr where none do.
std::pair<const Member*, const Member*> parted_pair(const JobView& view, const CommView& comm, Seq k) {
  const Member* reference = nullptr;
  for (const Member& member : comm.members) {
    if (!member.has(k) || !member.call(k).site) continue;
    if (!reference) {
      reference = &member;
    } else if (view.names().place_of(reference->call(k).site) != view.names().place_of(member.call(k).site)) {
      return {reference, &member};
    }
  }
  return {nullptr, nullptr};
}

// Whether the lines that meet at k meet again, always this way round: those of a root and of the others do,
// those of shifted calls meet both ways.
bool meet_again(const JobView& view, const Member& one, const Member& other, Seq k, Seq visible) {
  auto place = [&](const Member& member, Seq n) {
    return member.has(n) && member.call(n).site ? view.names().place_of(member.call(n).site) : PlaceId{0};
  };
  PlaceId mine = place(one, k), theirs = place(other, k);
  bool again = false;
  for (Seq n = k + 1; n < visible; ++n) {
    PlaceId a = place(one, n), b = place(other, n);
    if (a == theirs && b == mine) return false;
    again = again || (a == mine && b == theirs);
  }
  return again;
}

// Whether both made a call from that line at one position before k.
bool called_together(const JobView& view, const Member& one, const Member& other, PlaceId place, Seq k) {
  auto is_there = [&](const Member& member, Seq n) {
    return member.has(n) && member.call(n).site && view.names().place_of(member.call(n).site) == place;
  };
  for (Seq n = k; n-- > std::max(one.first, other.first);) {
    if (is_there(one, n) && is_there(other, n)) return true;
  }
  return false;
}

}  // namespace

bool is_lone_line(const JobView& view, const CommView& comm, Seq k, Seq visible, const PlaceClasses& places) {
  constexpr std::size_t kLongestShift = 64, kLookedAt = 256;
  auto [one, other] = parted_pair(view, comm, k);
  if (!one) return false;
  PlaceId mine = view.names().place_of(one->call(k).site),
          theirs = view.names().place_of(other->call(k).site);
  PlaceClasses joined = places;
  if (meet_again(view, *one, *other, k, visible)) joined.join(mine, theirs);
  Tokens a = call_tokens(view, *one, k, k + kLookedAt, joined),
         b = call_tokens(view, *other, k, k + kLookedAt, joined);
  std::size_t window = std::min<std::size_t>(visible - k, kLookedAt);
  // Where both came by both lines before, each with the other, these are no two ways to the same thing: they
  // do not speak for themselves.
  bool both_known =
      called_together(view, *one, *other, mine, k) && called_together(view, *one, *other, theirs, k);
  auto same_pair = [&](const Token& x, const Token& y) {
    return both_known && x.place != y.place && std::min(x.place, y.place) == std::min(mine, theirs) &&
           std::max(x.place, y.place) == std::max(mine, theirs);
  };
  auto agreeing = [&](const Tokens& x, const Tokens& y, std::size_t shift) {
    std::size_t n = 0;
    for (std::size_t i = 1; i < window && i < x.size() && i + shift < y.size(); ++i)
      n += x[i].key == y[i + shift].key && !same_pair(x[i], y[i + shift]);
    return n;
  };
  std::size_t in_place = agreeing(a, b, 0), shifted = 0;
  for (std::size_t shift = 1; shift <= kLongestShift && in_place > shifted; ++shift) {
    shifted = std::max({shifted, agreeing(a, b, shift), agreeing(b, a, shift)});
  }
  return in_place > 0 && in_place >= shifted;
}

}  // namespace dshang::job
