// Divergences whose disagreement is proven (arguments differ), or whose story is plain although nobody's arguments
// differ (the missing rank waits elsewhere or is going away): asks the explainers, in their order.
#include <algorithm>

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
      bool waits = std::any_of(member.calls.begin(), member.calls.end(), [](const job::Call* call) { return job::is_outstanding(*call); });
      if (waits) return true;
    }
  }
  return false;
}

// A missing rank is only late unless it is going away, or waits in another communicator, and its visits have parted.
bool is_plain(const JobView& view, const Divergence& d) {
  if (d.visible.kind == Visible::Kind::kArguments) return true;
  // Those that have ended are rank_dead.cpp's.
  if (!d.story.from_visits || d.missing.empty() || alive(view, d.missing).size() != d.missing.size()) return false;
  bool waits_elsewhere = std::all_of(d.missing.begin(), d.missing.end(), [&](Rank rank) { return outstanding_elsewhere(view, rank, *d.comm); });
  // Of two modules in two communicators it cannot be told whether one was left out or they are taken in another order.
  bool crossed = !d.story.next.empty() && d.story.next[0].kind == job::Token::Kind::kModule;
  if (waits_elsewhere) return !crossed && view.ago(d.since_ns) >= view.params().settle;
  if (d.story.teardown) return view.ago(d.since_ns) >= kTeardownSeconds;
  return view.ago(d.since_ns) >= view.stall_after() && d.story.kind == job::Story::Kind::kDeletion;
}

void run(Work& work) {
  for (std::size_t i = 0; i < work.divergences.size(); ++i) {
    const Divergence& d = work.divergences[i];
    if (work.explained[i] || !is_plain(work.view, d)) continue;
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
