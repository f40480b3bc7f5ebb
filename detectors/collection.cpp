#include "detectors/collection.h"

#include <algorithm>
#include <set>

namespace dshang::detect {
namespace {

using job::Call;
using job::Member;
using job::Seq;

constexpr Seq kLookedAt = 4096;  // calls

struct Walk {
  const JobView& view;
  const Member& member;
  std::uint64_t item(Seq k) const { return job::signature(view.ranks[member.process], member.call(k)); }
  job::PlaceId place(const Call& call) const { return call.site ? view.names().place_of(call.site) : 0; }
  // Of the collection to which `one` belongs.
  bool belongs(Seq k, const Call& one) const {
    const Call& call = member.call(k);
    return call.op == one.op && call.dtype == one.dtype && call.reduce_op == one.reduce_op &&
           call.root_or_peer == one.root_or_peer && call.phase == one.phase && call.module == one.module &&
           place(call) == place(one);
  }
};

const Member* member_of(const Divergence& d, Rank rank) {
  for (const Member& member : d.comm->members) {
    if (member.rank == rank) return &member;
  }
  return nullptr;
}

// The items of the walk that ends before call `k`, which moves to where it began.
std::set<std::uint64_t> items_before(const Walk& walk, const Call& one, Seq& k) {
  std::set<std::uint64_t> items;
  while (walk.member.has(k - 1) && walk.belongs(k - 1, one) && items.insert(walk.item(k - 1)).second) --k;
  return items;
}

bool are_items_of_one_walk(const Walk& walk, Seq k, std::uint64_t mine, std::uint64_t theirs) {
  const Call& one = walk.member.call(k);
  Seq at = k;
  std::set<std::uint64_t> made = items_before(walk, one, at);
  if (made.count(mine) || made.count(theirs)) return false;
  Seq oldest = k > kLookedAt ? k - kLookedAt : 1;
  while (at > oldest && walk.member.has(at - 1) && !walk.belongs(at - 1, one)) --at;
  std::set<std::uint64_t> before = items_before(walk, one, at);
  return before.count(mine) && before.count(theirs) &&
         std::includes(before.begin(), before.end(), made.begin(), made.end());
}

// It was made again and again, and never in this phase.
bool belongs_elsewhere(const Walk& walk, Seq k, std::uint64_t item, const Call& call) {
  constexpr int kOften = 2;
  int times = 0;
  for (Seq at = k; at-- > walk.member.first && k - at < kLookedAt;) {
    const Call& earlier = walk.member.call(at);
    if (walk.item(at) != item || walk.place(earlier) != walk.place(call)) continue;
    if (earlier.phase == call.phase) return false;
    ++times;
  }
  return call.phase && times >= kOften;
}

}  // namespace

bool swaps_items(const JobView& view, const Divergence& d) {
  const Member *told = member_of(d, d.told_of), *witness = member_of(d, d.witness);
  Seq k = d.visible.call;
  if (!told || !witness || !told->has(k) || !witness->has(k)) return false;
  Walk walk{view, *witness}, other{view, *told};
  std::uint64_t mine = other.item(k), theirs = walk.item(k);
  if (mine == theirs) return false;
  // What follows is the same in place: then this one is another.
  if (told->has(k + 1) && witness->has(k + 1) && other.item(k + 1) == walk.item(k + 1)) return false;
  return (walk.belongs(k, told->call(k)) && are_items_of_one_walk(walk, k, mine, theirs)) ||
         belongs_elsewhere(walk, k, mine, told->call(k));
}

}  // namespace dshang::detect
