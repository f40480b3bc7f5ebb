#include "detectors/habit.h"

#include "core/flight/hash.h"
#include "core/job/token.h"

namespace dshang::detect {
namespace {

using job::Call;

constexpr std::size_t kFewestAlike = 4;  // calls that stood behind each other before

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
  const Habit habit = habit_of(view, other);
  if (habit.goes != Goes::kOtherwise || habit.expected->comm != wait.other->comm_index) return false;
  bool sends = view.op_traits(view.ranks[wait.member->process], *wait.call) & flight::kOpSend;
  return habit.expected->root_or_peer == wait.member->position &&
         (view.op_traits(other, *habit.expected) & (sends ? flight::kOpRecv : flight::kOpSend));
}

}  // namespace dshang::detect
