// rank-conditional-call, where calls show it and neither phases nor module visits do: some ranks are in a
// call of a step that the others have left behind, without having made it.
//
// What meets there has nothing to do with each other (a metric of one step, the gradients of the next), so
// the difference of its arguments explains nothing.
#include <algorithm>
#include <map>
#include <set>

#include "detectors/words.h"

namespace dshang::detect {
namespace {

using job::Call;
using job::Member;

struct Sides {
  std::vector<const Member*> behind, ahead;  // behind: still in the earlier step
};

// By the step of their calls at the parting; absent where a step is not known, or the steps differed before.
std::optional<Sides> by_step(const Divergence& d) {
  job::Seq k = d.visible.call;
  std::map<std::int64_t, std::vector<const Member*>> by_step;
  std::set<std::int64_t> before;
  for (const Member& member : d.comm->members) {
    if (k == 0 || !member.has(k) || !member.has(k - 1) || member.call(k).step == job::kNoStep)
      return std::nullopt;
    by_step[member.call(k).step].push_back(&member);
    before.insert(member.call(k - 1).step);
  }
  if (by_step.size() < 2 || before.size() != 1) return std::nullopt;
  Sides sides{by_step.begin()->second, {}};
  for (auto at = std::next(by_step.begin()); at != by_step.end(); ++at)
    sides.ahead.insert(sides.ahead.end(), at->second.begin(), at->second.end());
  return sides;
}

job::PlaceId place_of(const JobView& view, const Call& call) {
  return call.site ? view.names().place_of(call.site) : 0;
}

// Whether the rank called from there in an earlier step.
bool usual(const JobView& view, const Member& member, const Call& call) {
  const auto& calls = view.ranks[member.process].records().calls;
  for (std::uint64_t n = calls.first(); n < calls.end(); ++n) {
    const Call& earlier = calls.at(n);
    if (!earlier.torn && earlier.step < call.step && earlier.site &&
        place_of(view, earlier) == place_of(view, call))
      return true;
  }
  return false;
}

std::vector<Rank> ranks_of(const std::vector<const Member*>& members) {
  std::vector<Rank> ranks;
  for (const Member* member : members) ranks.push_back(member->rank);
  return ranks;
}

bool are_suspects(const Divergence& d, const std::vector<Rank>& ranks) {
  return !d.suspects.empty() && std::all_of(ranks.begin(), ranks.end(), [&](Rank rank) {
    return std::count(d.suspects.begin(), d.suspects.end(), rank) > 0;
  });
}

std::optional<Explanation> explain(const JobView& view, const Divergence& d) {
  if (d.visible.kind != job::Visible::Kind::kArguments || d.story.from_visits || d.story.repetition)
    return std::nullopt;
  std::optional<Sides> sides = by_step(d);
  if (!sides) return std::nullopt;
  const Call& made = sides->behind[0]->call(d.visible.call);
  job::PlaceId place = place_of(view, made);
  auto same_place = [&](const Member* member) {
    return place_of(view, member->call(d.visible.call)) == place;
  };
  if (!place || !std::all_of(sides->behind.begin(), sides->behind.end(), same_place) ||
      std::any_of(sides->ahead.begin(), sides->ahead.end(), same_place))
    return std::nullopt;
  std::vector<Rank> makers = ranks_of(sides->behind), others = ranks_of(sides->ahead);
  bool left_out =
      are_suspects(d, others) || (!are_suspects(d, makers) && usual(view, *sides->behind[0], made));
  std::string what = "a collective (" + view.names().place_text(place) + ")",
              step = std::to_string(made.step);
  Explanation e;
  e.class_certainty = Certainty::kJudged;
  e.summary = left_out ? job::ranks_text(others) + " left out " + what + " that " + job::ranks_text(makers) +
                             (makers.size() == 1 ? " makes" : " make") + " in step " + step
                       : job::ranks_text(makers) + " made " + what + " that " + job::ranks_text(others) +
                             (others.size() == 1 ? " does" : " do") + " not make in step " + step;
  e.summary += "; " + waiting_at(d);
  e.evidence.push_back("judged: " + job::ranks_text(others) + (others.size() == 1 ? " is" : " are") +
                       " in a later step without that call, and what meets in " + call_at(d) +
                       " comes from different places");
  e.fix = {
      "Make the call on every rank: take it out of the condition (`if rank == 0:`, or one on data that "
      "differs, a "
      "`continue`), and keep only the printing or writing behind it. torch.distributed's calls, also those "
      "on objects, "
      "metrics of all ranks and barriers are collective.",
      "If the decision depends on data, all-reduce it, so that all ranks take it together.",
  };
  return e;
}

}  // namespace

DSHANG_EXPLAINER(7, "rank-conditional-call", explain);

}  // namespace dshang::detect
