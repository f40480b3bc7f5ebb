// rank-frozen, by what others have finished: ranks are still in collectives that other members have finished,
// although nobody finishes them before all have given their part.
//
// Judged by the stall threshold, and only where nothing else explains the hang: where one rank alone is left
// in a call that all of its communicator have recorded, rank_frozen.cpp tells it, with more.  What others
// have finished is also known where their records have only what is not finished (Flight Recorder dumps).
#include <algorithm>
#include <map>

#include "core/job/recorder_import.h"
#include "detectors/known_facts.h"
#include "detectors/rank_list.h"
#include "detectors/words.h"

namespace dshang::detect {
namespace {

// A collective that a rank has not finished and another member has, although nobody finishes it before all
// have given their part: broadcasts and the like are none of these, nor are exchanges in which two ranks may
// have nothing to say.
struct Unfinished {
  const job::CommView* comm = nullptr;
  const job::Member* member = nullptr;
  const job::Call* call = nullptr;
  Rank finished_on = -1;
};

bool needs_all(const JobView& view, const job::RankView& rank, const job::Call& call) {
  std::uint32_t traits = view.op_traits(rank, call);
  return (traits & flight::kOpCollective) && !(traits & flight::kOpRooted) &&
         view.op_name(rank, call) != "all_to_all";
}

bool has_finished(const JobView& view, const job::CommView& comm, const job::Member& member, job::Seq call) {
  if (member.has(call) && job::is_done(member.call(call))) return true;
  std::string key = job::finished_fact(comm.id);
  std::optional<std::int64_t> noted = number_of(fact_of(view, view.ranks[member.process], {key}));
  return noted && static_cast<job::Seq>(*noted) >= call;
}

// One of each rank, its oldest.
std::vector<Unfinished> finished_by_others(const JobView& view) {
  std::map<Rank, Unfinished> found;
  for (const job::CommView& comm : view.comms) {
    for (const job::Member& member : comm.members) {
      const job::RankView& rank = view.ranks[member.process];
      auto open = std::find_if(member.calls.begin(), member.calls.end(),
                               [](const job::Call* call) { return job::is_outstanding(*call); });
      if (open == member.calls.end() || !rank.alive() || !needs_all(view, rank, **open)) continue;
      if (view.ago((*open)->enter_ns) < view.stall_after()) continue;
      auto other = std::find_if(comm.members.begin(), comm.members.end(), [&](const job::Member& one) {
        return has_finished(view, comm, one, (*open)->number);
      });
      if (other == comm.members.end()) continue;
      Unfinished& oldest = found[member.rank];
      if (!oldest.call || (*open)->enter_ns < oldest.call->enter_ns)
        oldest = {&comm, &member, *open, other->rank};
    }
  }
  std::vector<Unfinished> all;
  for (const auto& [rank, one] : found) all.push_back(one);
  return all;
}

// What each is still in.
void tell_unfinished(const JobView& view, const std::vector<Unfinished>& all, Finding& f) {
  RankLines lines(f.evidence);
  for (const Unfinished& one : all) {
    f.suspects.push_back(one.member->rank);
    job::Side side = job::side_of(view, *one.member, *one.call);
    if (side.step && !f.step) f.step = side.step;
    if (!lines.next()) continue;
    f.evidence.push_back("rank " + std::to_string(one.member->rank) + " has not finished call " +
                         std::to_string(one.call->number) + " of " + one.comm->name + " (" + call_text(side) +
                         (side.site ? ", at " + *side.site : "") + "), which rank " +
                         std::to_string(one.finished_on) +
                         " has; nobody finishes it before all have given their part");
  }
}

Finding finding_of_all(const JobView& view, const std::vector<Unfinished>& all) {
  const Unfinished& first = *std::min_element(
      all.begin(), all.end(),
      [](const Unfinished& a, const Unfinished& b) { return a.call->enter_ns < b.call->enter_ns; });
  Finding f;
  f.type = "rank-frozen";
  f.severity = Severity::kHang;
  f.comm = first.comm->name;
  f.comm_ranks = first.comm->ranks();
  f.call = first.call->number;
  f.at = view.seconds(first.call->enter_ns);
  tell_unfinished(view, all, f);
  for (const job::RankView& rank : view.ranks) {
    const auto& calls = rank.records().calls;
    bool waits = false;
    for (std::uint64_t n = calls.first(); n < calls.end() && !waits; ++n) {
      waits = !calls.at(n).torn && job::waits_in(rank, calls.at(n));
    }
    if (waits && !std::count(f.suspects.begin(), f.suspects.end(), rank.rank)) f.waiting.push_back(rank.rank);
  }
  f.evidence.push_back(threshold_text(view));
  f.summary = job::ranks_text(f.suspects) + (all.size() == 1 ? " is" : " are") +
              " frozen: still in calls that others have finished, for " +
              seconds_text(view.ago(first.call->enter_ns));
  f.fix = {
      "The GPU of this rank, its driver or its links do not advance: look at the kernel log of that machine "
      "(`dmesg`, "
      "Xid errors), at `nvidia-smi -q` (ECC, retired pages), and whether the driver still answers.",
      "If it happens again on the same machine or device, take that out of the job."};
  return f;
}

void run(Work& work) {
  if (std::any_of(work.findings.begin(), work.findings.end(),
                  [](const Finding& f) { return f.severity >= Severity::kError; }))
    return;
  std::vector<Unfinished> all = finished_by_others(work.view);
  if (!all.empty()) work.findings.push_back(finding_of_all(work.view, all));
}

}  // namespace

DSHANG_DETECTOR(89, "rank-frozen", run);

}  // namespace dshang::detect
