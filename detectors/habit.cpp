#include "detectors/habit.h"

#include <algorithm>
#include <utility>

#include "core/flight/hash.h"
#include "core/job/token.h"

namespace dshang::detect {
namespace {

using job::Call;

constexpr std::size_t kFewestAlike = 4;  // calls that stood behind each other before
constexpr std::ptrdiff_t kRounds = 3;    // the present one and earlier ones

// The collective that the rank waits in, nullptr = it waits in something else.
const Call* waits_in_collective(const JobView& view, const job::RankView& rank) {
  const auto& calls = rank.records().calls;
  for (std::uint64_t n = calls.first(); n < calls.end(); ++n) {
    const Call& call = calls.at(n);
    if (call.torn || call.number == 0 || !job::waits_in(rank, call)) continue;
    return view.op_traits(rank, call) & flight::kOpCollective ? &call : nullptr;
  }
  return nullptr;
}

// How many calls that fit the rank made before the collective it waits in, since it last made such a one; and
// in the rounds before, the newest first.  Whole rounds only.
template <typename Fits>
std::vector<std::size_t> counts_before_waits(const JobView& view, const job::RankView& rank, Fits fits) {
  std::vector<std::size_t> rounds;
  const Call* now = waits_in_collective(view, rank);
  const auto& calls = rank.records().calls;
  std::size_t count = 0;
  bool behind = true;  // the one it waits in
  for (std::uint64_t n = calls.end(); now && n-- > calls.first();) {
    const Call& call = calls.at(n);
    if (call.torn || call.number == 0) continue;
    if (&call == now) behind = false;
    if (behind || &call == now) continue;
    bool same = call.comm == now->comm && call.phase == now->phase && call.module == now->module &&
                call.site == now->site && job::signature(rank, call) == job::signature(rank, *now);
    if (same) rounds.push_back(std::exchange(count, 0));
    if (fits(call)) ++count;
  }
  return rounds;
}

}  // namespace

Habit habit_of(const JobView& view, const job::RankView& rank) {
  const auto& calls = rank.records().calls;
  job::Tokens tokens;
  std::size_t first = 0;  // outstanding
  bool any = false;
  for (std::uint64_t n = calls.first(); n < calls.end(); ++n) {
    const Call& call = calls.at(n);
    if (call.torn || call.number == 0) continue;
    if (!any && job::waits_in(rank, call)) any = true, first = tokens.size();
    job::Token token;
    token.call = &call;
    job::PlaceId place = call.site ? view.names().place_of(call.site) : 0;
    std::uint64_t where = flight::mix(flight::mix(call.comm, call.phase), flight::mix(call.module, place));
    token.key = flight::mix(job::signature(rank, call), where);
    tokens.push_back(token);
  }
  if (!any || first == 0) return {};
  job::Tokens past(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(first));
  job::Context context = job::find_context(past);
  if (context.length < kFewestAlike) return {};
  bool as_before = past[context.end].key == tokens[first].key;
  return {as_before ? Goes::kAsBefore : Goes::kOtherwise, past[context.end].call};
}

bool left_out_message(const JobView& view, const Wait& wait) {
  if (!is_point_to_point(view, wait) || wait.behind || wait.group_open) return false;
  const job::RankView& other = view.ranks[wait.other->process];
  bool sends = view.op_traits(view.ranks[wait.member->process], *wait.call) & flight::kOpSend;
  std::uint32_t wanted = sends ? flight::kOpRecv : flight::kOpSend;
  auto fits = [&](const Call& call) {
    return call.comm == wait.other->comm_index && call.root_or_peer == wait.member->position &&
           (view.op_traits(other, call) & wanted);
  };
  const Habit habit = habit_of(view, other);
  if (habit.goes == Goes::kOtherwise && fits(*habit.expected)) return true;
  std::vector<std::size_t> rounds = counts_before_waits(view, other, fits);
  return rounds.size() >= kRounds &&
         std::all_of(rounds.begin() + 1, rounds.begin() + kRounds,
                     [&](std::size_t n) { return n == rounds[1] && n > rounds[0]; });
}

bool waits_for_left_out_message(const JobView& view) {
  using enum WaitGraph::Hosts;
  for (WaitGraph::Hosts hosts : {kInNccl, kInCuda, kQuiet}) {
    std::vector<Wait> ring = WaitGraph(view, hosts).cycle();
    if (std::any_of(ring.begin(), ring.end(), [&](const Wait& wait) { return left_out_message(view, wait); }))
      return true;
  }
  return false;
}

}  // namespace dshang::detect
