#include "core/job/crossed.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

namespace dshang::job {
namespace {

using Place = std::uint64_t;

constexpr std::size_t kStretchesNeeded = 3;
constexpr std::size_t kMostInStretch = 512;  // pairs of places in one stretch: more is another story
constexpr Place kOfModules = 1ULL << 32;

struct Pair {
  Seq call;
  Place mine, theirs;  // of the member, of the reference
};

bool comparable(Place a, Place b) { return a && b && (a & kOfModules) == (b & kOfModules); }

// Stretches of one member against the reference.
class Comparison {
 public:
  Comparison(const JobView& view, const Member& reference, const Member& member)
      : view_(view), reference_(reference), member_(member) {
    from_ = std::max<Seq>({reference.first, member.first, 1});
    to_ = std::min(reference.last(), member.last());
  }

  // Calls `use(begin, end, by_steps)` for every finished stretch [begin, end) in which something could be
  // crossed.
  template <typename Use>
  void for_each_stretch(Use use) const {
    for (Seq k = from_; k <= to_;) {
      const Call &a = reference_.call(k), &b = member_.call(k);
      Seq end = k + 1;
      if (a.step != kNoStep && b.step != kNoStep) {
        while (end <= to_ && reference_.call(end).step == a.step && member_.call(end).step == b.step) ++end;
        bool same_step = a.step == b.step, finished = end <= to_;
        if (same_step && finished && end - k > 1) use(k, end, true);
      } else {
        while (end <= to_ && equal(reference_.call(end), a)) ++end;
        bool closed = k > from_ && end <= to_;
        if (closed && end - k > 1) use(k, end, false);
      }
      k = end;
    }
  }

  std::vector<Pair> pairs(Seq begin, Seq end) const {
    std::vector<Pair> pairs;
    for (Seq k = begin; k < end && pairs.size() <= kMostInStretch; ++k) {
      Place theirs = origin_of(view_.names(), records_of(reference_), reference_.call(k)),
            mine = origin_of(view_.names(), records_of(member_), member_.call(k));
      if (mine != theirs && comparable(mine, theirs)) pairs.push_back({k, mine, theirs});
    }
    return pairs;
  }

  bool agrees_at(Seq k, Place place) const {
    return origin_of(view_.names(), records_of(reference_), reference_.call(k)) == place &&
           origin_of(view_.names(), records_of(member_), member_.call(k)) == place;
  }

 private:
  const RankRecords& records_of(const Member& member) const { return view_.ranks[member.process].records(); }

  bool equal(const Call& a, const Call& b) const {
    return a.op == b.op && a.count == b.count && a.dtype == b.dtype && a.reduce_op == b.reduce_op &&
           a.root_or_peer == b.root_or_peer && a.step == kNoStep;
  }

  const JobView& view_;
  const Member &reference_, &member_;
  Seq from_ = 1, to_ = 0;
};

using Group = std::set<Place>;  // places that are paired with each other, directly or through others

// The groups of places of a stretch, each with its pairs.
std::vector<std::pair<Group, std::vector<Pair>>> groups_of(const std::vector<Pair>& pairs) {
  std::vector<std::pair<Group, std::vector<Pair>>> groups;
  for (const Pair& pair : pairs) {
    std::pair<Group, std::vector<Pair>> joined{{pair.mine, pair.theirs}, {pair}};
    for (std::size_t i = 0; i < groups.size();) {
      if (!groups[i].first.count(pair.mine) && !groups[i].first.count(pair.theirs)) {
        ++i;
        continue;
      }
      joined.first.insert(groups[i].first.begin(), groups[i].first.end());
      joined.second.insert(joined.second.end(), groups[i].second.begin(), groups[i].second.end());
      groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(i));
    }
    groups.push_back(std::move(joined));
  }
  return groups;
}

// Both sides called from each place as often.
bool is_balanced(const std::vector<Pair>& pairs) {
  std::map<Place, int> balance;
  for (const Pair& pair : pairs) ++balance[pair.mine], --balance[pair.theirs];
  return std::all_of(balance.begin(), balance.end(), [](const auto& one) { return one.second == 0; });
}

struct Crossed {
  Seq first = 0, last = 0;
  std::size_t stretches = 0;
  bool by_steps = false;
};

// What is crossed between the two, by group of places.
std::map<Group, Crossed> crossed_groups(const Comparison& comparison) {
  std::map<Group, Crossed> crossed;
  std::set<std::pair<Place, Place>> alternatives;
  comparison.for_each_stretch([&](Seq begin, Seq end, bool by_steps) {
    std::vector<Pair> pairs = comparison.pairs(begin, end);
    if (pairs.empty() || pairs.size() > kMostInStretch) return;
    for (const auto& [group, its_pairs] : groups_of(pairs)) {
      if (!is_balanced(its_pairs)) {
        for (const Pair& pair : its_pairs) alternatives.insert(std::minmax(pair.mine, pair.theirs));
        continue;
      }
      auto [first, last] = std::minmax_element(its_pairs.begin(), its_pairs.end(),
                                               [](const Pair& a, const Pair& b) { return a.call < b.call; });
      Crossed& found = crossed[group];
      if (found.stretches++ == 0) found.first = first->call, found.by_steps = by_steps;
      found.last = last->call;
    }
  });
  // Lines that were paired one-sidedly stand for each other (a dummy branch): where they are crossed, that is
  // chance.
  std::erase_if(crossed, [&](const auto& one) {
    return std::any_of(alternatives.begin(), alternatives.end(), [&](const auto& pair) {
      return one.first.count(pair.first) && one.first.count(pair.second);
    });
  });
  return crossed;
}

// Stretches in which both sides called from all places of the group, at the same positions.
std::size_t uncrossed(const Comparison& comparison, const Group& group) {
  std::size_t stretches = 0;
  comparison.for_each_stretch([&](Seq begin, Seq end, bool) {
    Group seen;
    for (Seq k = begin; k < end; ++k) {
      for (Place place : group) {
        if (comparison.agrees_at(k, place)) seen.insert(place);
      }
    }
    stretches += seen == group;
  });
  return stretches;
}

// Whether the member took the two places in another order before.
std::optional<bool> changed_its_order(const JobView& view, const Member& member, Seq at, Place first,
                                      Place second) {
  Seq last_first = 0, last_second = 0;
  for (Seq k = member.first; k < at; ++k) {
    Place place = origin_of(view.names(), view.ranks[member.process].records(), member.call(k));
    if (place == first) last_first = k;
    if (place == second) last_second = k;
  }
  if (!last_first || !last_second) return std::nullopt;
  return last_first > last_second;
}

// The minority at the first crossed call; without a majority those that changed their own order while the
// others did not.
void find_suspects(const JobView& view, const CommView& comm, Crossing& found) {
  std::map<Place, std::vector<const Member*>> camps;
  for (const Member& member : comm.members) {
    if (member.has(found.first))
      camps[origin_of(view.names(), view.ranks[member.process].records(), member.call(found.first))]
          .push_back(&member);
  }
  camps.erase(0);
  auto largest = std::max_element(camps.begin(), camps.end(), [](const auto& a, const auto& b) {
    return a.second.size() < b.second.size();
  });
  std::size_t all = 0;
  for (const auto& [place, members] : camps) all += members.size();
  Place kept = largest->first;
  bool majority = 2 * largest->second.size() > all;
  if (!majority && camps.size() == 2) {
    Place a = camps.begin()->first, b = camps.rbegin()->first;
    auto a_changed = changed_its_order(view, *camps[a].front(), found.first, a, b);
    auto b_changed = changed_its_order(view, *camps[b].front(), found.first, b, a);
    if (a_changed && b_changed && *a_changed != *b_changed) kept = *a_changed ? b : a, majority = true;
  }
  const Member* told = nullptr;
  for (const auto& [place, members] : camps) {
    if (place == kept) continue;
    if (!told) told = members.front();
    for (const Member* member : members) {
      if (majority) found.suspects.push_back(member->rank);
    }
  }
  std::sort(found.suspects.begin(), found.suspects.end());
  const Member* other = camps[kept].front();
  found.told_of = told->rank;
  found.witness = other->rank;
  found.sides = {&told->call(found.first), &other->call(found.first)};
}

}  // namespace

bool is_made_for_module(const RankRecords& records, const Call& call) {
  if (!call.module || call.op >= records.ops.size()) return false;
  const char* op = records.ops[call.op].name;
  return std::strncmp(op, "all_gather", 10) == 0 || std::strncmp(op, "reduce_scatter", 14) == 0;
}

std::uint64_t origin_of(const Names& names, const RankRecords& records, const Call& call) {
  if (is_made_for_module(records, call)) return kOfModules | call.module;
  return call.site ? names.place_of(call.site) : 0;
}

std::optional<Crossing> find_crossing(const JobView& view, const CommView& comm) {
  if (comm.members.size() < 2) return std::nullopt;
  const Member& reference = comm.members.front();
  std::optional<Crossing> found;
  for (const Member& member : comm.members) {
    if (&member == &reference) continue;
    Comparison comparison(view, reference, member);
    for (const auto& [group, crossed] : crossed_groups(comparison)) {
      if (found && found->first <= crossed.first) {
        if (found->first == crossed.first) found->last = std::max(found->last, crossed.last);
        continue;
      }
      if (crossed.stretches + uncrossed(comparison, group) < kStretchesNeeded) continue;
      found = Crossing{};
      found->first = crossed.first;
      found->last = crossed.last;
      found->stretches = crossed.stretches;
      found->by_steps = crossed.by_steps;
    }
  }
  if (found) find_suspects(view, comm, *found);
  return found;
}

}  // namespace dshang::job
