// comm-init-stall, before any communicator: ranks that wait in the rendezvous or the store for one that has
// not come.
//
// Seen of processes that have woken (a device was chosen or device memory allocated) by their Python stacks.
// The only finding that may name a process without a communicator.  Where nobody of those heard from is
// missing, it rests on the stacks of those that wait.
#include <algorithm>

#include "detectors/progress.h"
#include "detectors/whereabouts.h"
#include "detectors/words.h"

namespace dshang::detect {
namespace {

using job::RankView;

bool ends_with(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// torch's own code that meets the other ranks through the store (file names of torch 1.13 to 2.14).
bool is_rendezvous(const JobView& view, const job::Site& site) {
  return std::any_of(site.frames.begin(), site.frames.end(), [&](const job::FrameName& frame) {
    const std::string& file = view.names().text(frame.file);
    const std::string& function = view.names().text(frame.function);
    if (ends_with(file, "distributed/rendezvous.py")) return true;
    return ends_with(file, "distributed/distributed_c10d.py") &&
           (function == "init_process_group" || function == "_store_based_barrier" ||
            function == "_new_process_group_helper");
  });
}

void run(Work& work) {
  const JobView& view = work.view;
  if (view.world_size < 2 || !view.comms.empty() || view.ranks.empty()) return;
  std::vector<const RankView*> waiting, others;
  std::uint64_t latest = 0;
  for (const RankView& rank : view.ranks) {
    if (!rank.records().comms.empty()) return;
    latest = std::max(latest, rank.records().start_ns);
  }
  double waited = view.ago(latest);  // until the first of them ended
  for (const RankView& rank : view.ranks) waited = std::min(waited, lasted(view, rank, latest));
  if (waited < view.stall_after() / 2) return;
  std::string at;
  for (const RankView& rank : view.ranks) {
    work.wants_stacks.push_back(rank.index);
    const job::Stack* stack = newest_stack(rank);
    const job::Site* site = stack ? &view.names().site(stack->site) : nullptr;
    bool waits = site && is_rendezvous(view, *site);
    (waits ? waiting : others).push_back(&rank);
    if (waits && at.empty() && site->user_place) at = view.names().place_text(site->user_place);
  }
  if (waiting.empty() || waited < view.stall_after()) return;
  Finding f;
  f.type = "comm-init-stall";
  for (const RankView* rank : waiting) f.waiting.push_back(rank->rank);
  for (const RankView* rank : others) f.suspects.push_back(rank->rank);
  std::int32_t unheard = view.world_size - static_cast<std::int32_t>(view.ranks.size());
  bool advances = std::any_of(others.begin(), others.end(), [&](const RankView* rank) {
    return progress_of(view, *rank, view.stall_after()).advances();
  });
  f.severity = advances ? Severity::kInfo : others.empty() ? Severity::kWarning : Severity::kHang;
  f.summary = wait_text(f.waiting) + " in the rendezvous for " + seconds_text(waited) +
              (at.empty() ? "" : " at " + at) + ", before any communicator; ";
  if (!others.empty()) {
    f.summary += job::ranks_text(f.suspects) + (others.size() == 1 ? " has" : " have") + " not come";
    for (const RankView* rank : others) {
      f.evidence.push_back("rank " + std::to_string(rank->rank) + " " +
                           whereabouts(view, static_cast<std::size_t>(rank - view.ranks.data())));
    }
  } else {
    f.summary += unheard > 0 ? "of the " + std::to_string(view.world_size) + " ranks " +
                                   std::to_string(unheard) + " were not heard from"
                             : "all ranks were heard from";
  }
  f.evidence.push_back(threshold_text(view));
  f.fix = {
      "Look at the rank that has not come: it may have failed at start, wait for a lock or download, or run "
      "on another node.",
      "Check that all ranks have the same MASTER_ADDR, MASTER_PORT and WORLD_SIZE, and reach that port."};
  f.at = view.seconds(latest);
  work.findings.push_back(std::move(f));
}

}  // namespace

DSHANG_DETECTOR(19, "comm-init-stall", run);

}  // namespace dshang::detect
