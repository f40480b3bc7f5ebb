// comm-init-stall and host-stall where NCCL knows of no call: ranks wait inside torch.distributed (in the
// store for the id of a communicator that its first member has not made, or in a group on CPUs) or in the
// creation of a communicator whose members are not known, while others do nothing on their hosts.
//
// Who waits is seen by the Python stacks.  Only where all ranks were heard from, none has a call outstanding,
// and none of those that do not wait makes progress.
#include <algorithm>
#include <map>

#include "detectors/progress.h"
#include "detectors/whereabouts.h"
#include "detectors/words.h"

namespace dshang::detect {
namespace {

using job::RankView;

struct Waiting {
  std::vector<const RankView*> creating, in_torch, elsewhere;
  std::uint64_t since_ns = 0;  // the last of them does so
  bool unknown = false;        // of one of them nothing can be said
};

Waiting look_at(const JobView& view) {
  Waiting w;
  for (const RankView& rank : view.ranks) {
    std::uint64_t creating = job::creating_since(rank), idle = idle_since(view, rank);
    if (!rank.alive() || (creating == 0 && idle == 0)) w.unknown = true;  // ended, or in a call
    w.since_ns = std::max({w.since_ns, creating, idle});
  }
  if (w.unknown) return w;
  for (const RankView& rank : view.ranks) {
    if (job::creating_since(rank)) {
      w.creating.push_back(&rank);
      continue;
    }
    std::optional<std::string> function = torch_function(view, rank, idle_since(view, rank));
    if (!function) {
      w.unknown = true;
    } else {
      (function->empty() ? w.elsewhere : w.in_torch).push_back(&rank);
    }
  }
  return w;
}

std::vector<Rank> ranks_of(const std::vector<const RankView*>& views) {
  std::vector<Rank> ranks;
  for (const RankView* view : views) ranks.push_back(view->rank);
  return ranks;
}

std::string user_place(const JobView& view, const RankView& rank) {
  const job::Stack* stack = newest_stack(rank);
  const job::Site* site = stack ? &view.names().site(stack->site) : nullptr;
  return site && site->user_place ? " at " + view.names().place_text(site->user_place) : "";
}

// One line for those that do the same in the same place.
std::vector<std::string> evidence(const JobView& view, const Waiting& w) {
  std::vector<std::string> lines;
  auto add = [&](const std::vector<const RankView*>& ranks, auto text_of) {
    std::map<std::string, std::vector<Rank>> alike;
    for (const RankView* rank : ranks) alike[text_of(*rank)].push_back(rank->rank);
    for (const auto& [text, who] : alike) lines.push_back(job::ranks_text(who) + ": " + text);
  };
  add(w.creating, [](const RankView&) { return "inside NCCL's creation of a communicator"; });
  add(w.in_torch, [&](const RankView& rank) {
    return "in torch.distributed's " + torch_function(view, rank, 0).value_or("") + user_place(view, rank) +
           " without a call of NCCL: in the store, where a communicator is made at its first use, or in a "
           "group "
           "on CPUs";
  });
  add(w.elsewhere, [&](const RankView& rank) { return "on the host" + user_place(view, rank); });
  return lines;
}

Finding make_finding(const JobView& view, const Waiting& w, const std::vector<Progress>& progress) {
  Finding f;
  f.type = w.creating.empty() ? "host-stall" : "comm-init-stall";
  f.certainty = f.class_certainty = Certainty::kJudged;
  f.suspects = ranks_of(w.elsewhere);
  f.waiting = ranks_of(w.creating);
  for (Rank rank : ranks_of(w.in_torch)) f.waiting.push_back(rank);
  std::sort(f.waiting.begin(), f.waiting.end());
  bool others_work =
      std::any_of(progress.begin(), progress.end(), [](const Progress& p) { return p.others_work(); });
  f.severity = others_work ? Severity::kWarning : Severity::kHang;
  std::string waited = seconds_text(view.ago(w.since_ns));
  std::string innermost = progress.front().innermost;
  f.summary = job::ranks_text(f.suspects) + (f.suspects.size() == 1 ? " is" : " are") +
              (others_work ? "" : " stuck") + " on the host" +
              (f.suspects.size() == 1 && !innermost.empty() ? " in " + innermost : "") + " while " +
              wait_text(f.waiting) +
              (w.creating.empty() ? " inside torch.distributed" : " for communicators to be created") + " (" +
              waited + ")";
  f.evidence = evidence(view, w);
  std::vector<std::string> lines = evidence_of_progress(progress.front());
  f.evidence.insert(f.evidence.end(), lines.begin(), lines.end());
  f.evidence.push_back(threshold_text(view));
  f.fix = fixes_of_progress(progress.front(), false);
  f.at = view.seconds(w.since_ns);
  std::int64_t step = w.elsewhere.front()->records().step;
  if (step != job::kNoStep) f.step = step;
  return f;
}

bool is_told(const Work& work) {
  return std::any_of(work.findings.begin(), work.findings.end(), [](const Finding& f) {
    return f.type == "comm-init-stall" || f.type == "host-stall" || f.severity >= Severity::kError;
  });
}

void run(Work& work) {
  const JobView& view = work.view;
  bool all_heard = view.world_size >= 2 && static_cast<std::int32_t>(view.ranks.size()) == view.world_size;
  if (!all_heard || view.comms.empty() || is_told(work)) return;
  Waiting w = look_at(view);
  if (w.since_ns == 0 || view.ago(w.since_ns) < view.stall_after() / 2) return;
  for (const RankView& rank : view.ranks) {
    if (rank.alive()) work.wants_stacks.push_back(rank.index);
  }
  bool some_wait = !w.creating.empty() || !w.in_torch.empty();
  if (w.unknown || !some_wait || w.elsewhere.empty() || view.ago(w.since_ns) < view.stall_after()) return;
  std::vector<Progress> progress;
  for (const RankView* rank : w.elsewhere) {
    progress.push_back(progress_of(view, *rank, view.stall_after(), w.since_ns));
    if (!progress.back().known || progress.back().advances()) return;
  }
  work.findings.push_back(make_finding(view, w, progress));
}

}  // namespace

DSHANG_DETECTOR(42, "host-stall", run);

}  // namespace dshang::detect
