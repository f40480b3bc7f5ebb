// group-unclosed: ncclGroupStart without its End: what was called in the group was never issued, and the
// others wait.
//
// Judged by the stall threshold; proven where the rank has begun a new step with the group of an earlier one
// open.  A group that is open while nobody waits is nobody's business.
#include <algorithm>

#include "detectors/progress.h"
#include "detectors/words.h"

namespace dshang::detect {
namespace {

using job::Call;
using job::RankView;

struct OpenGroup {
  std::size_t rank = 0;            // index into JobView::ranks
  std::vector<const Call*> calls;  // made in it and not issued
  std::uint64_t since_ns = 0;      // its last call; without any, the thread's last
  bool step_has_passed = false;
};

// ncclGroupEnd itself may take its time, and so may a call before it.
bool inside_nccl(const RankView& rank, const job::Thread& thread) {
  return thread.inside && rank.names->text(thread.inside).compare(0, 4, "nccl") == 0;
}

std::optional<OpenGroup> look_at(const RankView& rank, std::size_t index) {
  const job::RankRecords& records = rank.records();
  OpenGroup open;
  open.rank = index;
  bool is_open = false;
  for (std::uint32_t t = 0; t < records.threads.size(); ++t) {
    const job::Thread& thread = records.threads[t];
    if (thread.group_depth == 0 || inside_nccl(rank, thread)) continue;
    is_open = true;
    open.since_ns = std::max(open.since_ns, thread.last_ns);
    std::uint32_t newest_group = 0;
    for (std::uint64_t n = records.calls.first(); n < records.calls.end(); ++n) {
      const Call& call = records.calls.at(n);
      bool pending = !call.torn && call.thread == t && (call.flags & flight::kCallGroupPending) &&
                     !(call.flags & flight::kCallFailed);
      if (!pending) continue;
      if (call.group > newest_group) newest_group = call.group, open.calls.clear();
      open.calls.push_back(&call);
      open.since_ns = std::max(open.since_ns, call.enter_ns);
    }
  }
  if (!is_open) return std::nullopt;
  if (!open.calls.empty()) {
    for (std::uint64_t n = open.calls[0]->visits_before; records.visits.has(n); ++n) {
      open.step_has_passed |=
          !records.visits.at(n).torn && records.visits.at(n).kind == flight::VisitKind::kStep;
    }
  }
  return open;
}

// Others that wait in a communicator in which this rank's calls are held back, or are missing.
void find_waiting(const JobView& view, const OpenGroup& open, Finding& f) {
  std::uint64_t since = UINT64_MAX;
  for (const job::CommView& comm : view.comms) {
    const job::Member* mine = comm.member_of(open.rank);
    if (!mine) continue;
    const Call* held = nullptr;
    for (const Call* call : open.calls) {
      if (call->comm == mine->comm_index && (!held || call->enter_ns < held->enter_ns)) held = call;
    }
    if (!open.calls.empty() && !held) continue;
    for (const job::Member& member : comm.members) {
      const RankView& rank = view.ranks[member.process];
      if (&member == mine) continue;
      const auto& calls = rank.records().calls;
      for (std::uint64_t n = calls.first(); n < calls.end(); ++n) {
        const Call& call = calls.at(n);
        if (call.torn || call.comm != member.comm_index || !job::waits_in(rank, call)) continue;
        f.waiting.push_back(member.rank);
        job::Side side = job::side_of(view, member, call);
        side.ranks = {member.rank};
        f.sides.push_back(std::move(side));
        if (call.enter_ns < since) {
          since = call.enter_ns;
          f.comm = comm.name;
          f.comm_ranks = comm.ranks();
          f.call = call.number;
        }
        break;
      }
    }
  }
  std::sort(f.waiting.begin(), f.waiting.end());
  f.waiting.erase(std::unique(f.waiting.begin(), f.waiting.end()), f.waiting.end());
  f.at = since == UINT64_MAX ? 0 : view.seconds(std::max(since, open.since_ns));
}

std::string call_line(const JobView& view, const OpenGroup& open, const Call& call) {
  for (const job::CommView& comm : view.comms) {
    const job::Member* member = comm.member_of(open.rank);
    if (!member || member->comm_index != call.comm) continue;
    job::Side side = job::side_of(view, *member, call);
    return call_text(side) + " (call " + std::to_string(call.number) + " of " + comm.name + ")" +
           (side.site ? " at " + *side.site : "");
  }
  return "a call of another communicator";
}

Finding make_finding(const JobView& view, const OpenGroup& open) {
  Finding f;
  f.type = "group-unclosed";
  f.severity = Severity::kHang;
  f.certainty = f.class_certainty = open.step_has_passed ? Certainty::kProven : Certainty::kJudged;
  f.suspects = {view.ranks[open.rank].rank};
  find_waiting(view, open, f);
  std::string name = "rank " + std::to_string(f.suspects[0]);
  std::string since = seconds_text(lasted(view, view.ranks[open.rank], open.since_ns));
  f.summary = name + " has opened a group (ncclGroupStart) and not closed it for " + since + ": ";
  f.summary += open.calls.empty() ? "what it calls is not issued"
                                  : "its " + call_line(view, open, *open.calls[0]) + " was never issued";
  f.summary += "; " + wait_text(f.waiting);
  if (f.call) f.summary += " in call " + std::to_string(*f.call) + " of " + *f.comm;
  for (std::size_t i = 0; i < open.calls.size() && i < 4; ++i)
    f.evidence.push_back("held back in the group: " + call_line(view, open, *open.calls[i]));
  if (open.calls.size() > 4) f.evidence.push_back("and " + std::to_string(open.calls.size() - 4) + " more");
  if (open.step_has_passed) f.evidence.push_back(name + " has begun its next step with the group open");
  const RankView& rank = view.ranks[open.rank];
  const auto& exceptions = rank.records().exceptions;
  if (!exceptions.empty() && !open.calls.empty() &&
      exceptions.at(exceptions.end() - 1).time_ns >= open.calls[0]->enter_ns) {
    const job::Exception& last = exceptions.at(exceptions.end() - 1);
    f.evidence.push_back("an exception was raised in it: " + view.names().text(last.type) + ": " +
                         view.names().text(last.message));
  }
  if (!open.step_has_passed) f.evidence.push_back(threshold_text(view));
  if (!open.calls.empty() && open.calls[0]->step != job::kNoStep) f.step = open.calls[0]->step;
  f.fix = {
      "Close the group on every way out: `ncclGroupEnd` also after an exception, a `return` or a `continue` "
      "between Start and End "
      "(try/finally, or a context manager that does so).",
      "With torch: let `_coalescing_manager` or `batch_isend_irecv` end normally; do not catch an exception "
      "outside of it and go on."};
  return f;
}

// Long enough to say so.  A rank that ended normally with the group open will not close it; one that failed
// in it is another story.
bool stays_open(const JobView& view, const OpenGroup& open) {
  const RankView& rank = view.ranks[open.rank];
  const auto& death = rank.journal().death;
  bool ended = death && death->known != job::EndingKnown::kNo && !death->by_signal && death->code == 0;
  double needed = open.step_has_passed || ended ? view.params().settle : view.stall_after();
  return (ended ? view.ago(open.since_ns) : lasted(view, rank, open.since_ns)) >= needed;
}

void run(Work& work) {
  const JobView& view = work.view;
  for (std::size_t r = 0; r < view.ranks.size(); ++r) {
    std::optional<OpenGroup> open = look_at(view.ranks[r], r);
    if (!open || !stays_open(view, *open)) continue;
    Finding f = make_finding(view, *open);
    if (f.waiting.empty()) continue;
    for (std::size_t i = 0; i < work.divergences.size(); ++i) {
      const Divergence& d = work.divergences[i];
      bool missed = std::count(d.missing.begin(), d.missing.end(), f.suspects[0]) > 0;
      if (missed && d.visible.kind == job::Visible::Kind::kMissing) work.explained[i] = true;
    }
    work.findings.push_back(std::move(f));
    return;
  }
}

}  // namespace

DSHANG_DETECTOR(13, "group-unclosed", run);

}  // namespace dshang::detect
