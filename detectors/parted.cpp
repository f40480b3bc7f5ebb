// Divergences whose disagreement is proven (arguments differ), or whose story is plain although nobody's
// arguments differ (the missing rank waits elsewhere or is going away): asks the explainers, in their order.
#include <algorithm>

#include "detectors/habit.h"
#include "detectors/words.h"

namespace dshang::detect {
namespace {

using job::Visible;

constexpr double kTeardownSeconds = 3;  // a process that goes away is mostly gone within this time

bool outstanding_elsewhere(const JobView& view, Rank rank, const job::CommView& here) {
  for (const job::CommView& comm : view.comms) {
    if (comm.id == here.id) continue;
    for (const job::Member& member : comm.members) {
      if (member.rank != rank) continue;
      bool waits = std::any_of(member.calls.begin(), member.calls.end(),
                               [](const job::Call* call) { return job::is_outstanding(*call); });
      if (waits) return true;
    }
  }
  return false;
}

// How long the missing ranks have been missing, in seconds; of those that were ended, until then.
double missing_for(const JobView& view, const Divergence& d) {
  double shortest = view.ago(d.since_ns);
  for (Rank rank : d.missing) {
    const job::RankView* r = view.by_rank(rank);
    if (r->alive()) continue;
    std::uint64_t ended = r->journal().death->time_ns;
    shortest = std::min(shortest, ended > d.since_ns ? static_cast<double>(ended - d.since_ns) / 1e9 : 0);
  }
  return shortest;
}

// A missing rank is only late unless it is going away, or waits in another communicator, and its visits have
// parted.
bool is_plain(const JobView& view, const Divergence& d) {
  if (d.visible.kind == Visible::Kind::kArguments) return true;
  bool told = d.story.from_visits || (d.origin_proven && d.story.repetition);
  if (!told || d.missing.empty()) return false;
  double missing = missing_for(view, d);
  bool stalled =
      missing >= view.stall_after() && (d.story.kind == job::Story::Kind::kDeletion || d.story.repetition);
  // Those that have ended are rank_dead.cpp's, unless they were missing for long before.
  if (alive(view, d.missing).size() != d.missing.size()) return stalled && !d.story.teardown;
  bool waits_elsewhere = std::all_of(d.missing.begin(), d.missing.end(),
                                     [&](Rank rank) { return outstanding_elsewhere(view, rank, *d.comm); });
  // Of two modules in two communicators it cannot be told whether one was left out or they are taken in
  // another order; unless the others took both, in their order.
  bool crossed =
      !d.story.next.empty() && d.story.next[0].kind == job::Token::Kind::kModule && !d.story.others_went_on;
  if (waits_elsewhere) return !crossed && missing >= view.params().settle;
  if (d.story.teardown) return missing >= kTeardownSeconds;
  return stalled;
}

void run(Work& work) {
  for (std::size_t i = 0; i < work.divergences.size(); ++i) {
    const Divergence& d = work.divergences[i];
    if (work.explained[i] || !is_plain(work.view, d)) continue;
    // What is missing on the calls is the consequence of a message that is.
    if (d.visible.kind == Visible::Kind::kMissing && waits_for_left_out_message(work.view)) continue;
    for (const Explainer& explainer : Registry::explainers()) {
      std::optional<Explanation> explanation = explainer.explain(work.view, d);
      if (!explanation) continue;
      work.findings.push_back(finding_of(work.view, d, explainer.type, std::move(*explanation)));
      // What else waits, waits because of it.
      std::fill(work.explained.begin(), work.explained.end(), true);
      return;
    }
  }
}

}  // namespace

DSHANG_DETECTOR(15, "parted", run);

}  // namespace dshang::detect
