// no-collective-outstanding: no rank has a call outstanding and none advances: every rank waits on its host.
// Not a communication hang.
//
// Judged by the stall threshold.  Only where all ranks were heard from and can be read: a rank of which
// nothing is known may be the one that works.
#include <algorithm>
#include <map>

#include "detectors/progress.h"
#include "detectors/whereabouts.h"
#include "detectors/words.h"

namespace dshang::detect {
namespace {

using job::RankView;

// Since when nothing was recorded of any rank; 0 = somebody has a call outstanding or has ended.
std::uint64_t idle_since_all(const JobView& view) {
  std::uint64_t since = 0;
  for (const RankView& rank : view.ranks) {
    std::uint64_t idle = rank.alive() && !rank.records().comms.empty() ? idle_since(view, rank) : 0;
    if (idle == 0) return 0;
    since = std::max(since, idle);
  }
  return since;
}

bool all_heard(const JobView& view) {
  return view.world_size >= 2 && static_cast<std::int32_t>(view.ranks.size()) == view.world_size;
}

void run(Work& work) {
  const JobView& view = work.view;
  bool is_told = std::any_of(work.findings.begin(), work.findings.end(),
                             [](const Finding& f) { return f.severity >= Severity::kHang; });
  if (!all_heard(view) || is_told) return;
  std::uint64_t since = idle_since_all(view);
  if (since == 0 || view.ago(since) < view.stall_after() / 2) return;
  for (const RankView& rank : view.ranks) work.wants_stacks.push_back(rank.index);
  if (view.ago(since) < view.stall_after()) return;
  std::map<std::string, std::vector<Rank>> places;
  bool for_each_other = true;
  for (const RankView& rank : view.ranks) {
    Progress p = progress_of(view, rank, view.stall_after());
    if (!p.known || p.advances()) return;
    std::string at = p.innermost.empty() ? "an unknown place" : p.innermost;
    if (!p.sleeping_in.empty()) at += ", sleeping in " + p.sleeping_in;
    places[at].push_back(rank.rank);
    for_each_other =
        for_each_other && !torch_function(view, rank, idle_since(view, rank)).value_or("").empty();
  }
  Finding f;
  f.type = "no-collective-outstanding";
  f.severity = Severity::kWarning;
  for (const RankView& rank : view.ranks) f.waiting.push_back(rank.rank);
  std::string waited = seconds_text(view.ago(since));
  f.summary =
      for_each_other
          ? "all ranks wait inside torch.distributed for " + waited +
                " and none has a call of NCCL outstanding: they wait for each other in the store, where "
                "communicators are made at their first use, or in a group on CPUs"
          : "all ranks wait on the host for " + waited +
                " and none has a call outstanding: this is not a communication hang";
  for (const auto& [at, ranks] : places) f.evidence.push_back(job::ranks_text(ranks) + ": in " + at);
  f.evidence.push_back("no rank used CPU time or I/O worth mentioning in the last " +
                       seconds_text(view.stall_after()));
  f.evidence.push_back(threshold_text(view));
  f.fix = for_each_other ? std::vector<std::string>{
      "All ranks have to use their groups in the same order, those on CPUs (gloo) too: look at the lines above "
      "for the condition that leads to different ones."} : std::vector<std::string>{
      "Look at the functions above: a queue, a lock, a server or a file system that all ranks wait for (data "
      "loader, reward or "
      "inference server, metrics, checkpoint storage).",
      "If they wait on purpose (a long sleep, an external job), nothing has to be done."};
  f.at = view.seconds(since);
  std::int64_t step = view.ranks[0].records().step;
  if (step != job::kNoStep) f.step = step;
  work.findings.push_back(std::move(f));
}

}  // namespace

DSHANG_DETECTOR(85, "no-collective-outstanding", run);

}  // namespace dshang::detect
