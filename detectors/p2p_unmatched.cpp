// p2p-unmatched: a send without its receive, or the other way round; argument-mismatch where both were made
// and differ in size; host-stall where the other is on its host and may still come.
//
// Sends are counted per (sender, receiver), so the n-th send from a to b belongs to the n-th receive on b
// from a, and the communicator of the finding names the pair.  Proven where both ranks are inside calls of
// NCCL that wait for each other; else judged by where their hosts are (waits.h) or by the stall threshold.  A
// small send completes without its receive: then nobody waits, and nothing is said.
#include <algorithm>

#include "detectors/habit.h"
#include "detectors/progress.h"
#include "detectors/waits.h"
#include "detectors/words.h"

namespace dshang::detect {
namespace {

using job::Call;
using job::Member;
using job::RankView;

bool sends(const JobView& view, const Wait& wait) {
  return view.op_traits(view.ranks[wait.member->process], *wait.call) & flight::kOpSend;
}

std::string pair_name(const JobView& view, const Wait& wait) {
  Rank from = wait.member->rank, to = wait.other->rank;
  if (!sends(view, wait)) std::swap(from, to);
  return wait.comm->name + " " + std::to_string(from) + "->" + std::to_string(to);
}

void place(const JobView& view, const Wait& wait, Finding& f) {
  f.comm = pair_name(view, wait);
  f.comm_ranks = {std::min(wait.member->rank, wait.other->rank),
                  std::max(wait.member->rank, wait.other->rank)};
  f.call = wait.call->number;
  if (wait.call->step != job::kNoStep) f.step = wait.call->step;
  job::Side side = job::side_of(view, *wait.member, *wait.call);
  side.ranks = {wait.member->rank};
  f.sides.push_back(std::move(side));
}

// The last call between the two in this direction that the other has made.
std::string last_between(const JobView& view, const Wait& wait) {
  const RankView& other = view.ranks[wait.other->process];
  std::uint32_t wanted = sends(view, wait) ? flight::kOpRecv : flight::kOpSend;
  const auto& calls = other.records().calls;
  for (std::uint64_t n = calls.end(); n-- > calls.first();) {
    const Call& call = calls.at(n);
    if (call.torn || call.comm != wait.other->comm_index || call.root_or_peer != wait.member->position)
      continue;
    if (!(view.op_traits(other, call) & wanted) || (call.flags & flight::kCallFailed)) continue;
    std::string text = "its last " + std::string(wanted == flight::kOpSend ? "send" : "receive") +
                       " of this pair is number " + std::to_string(call.number);
    if (call.step != job::kNoStep) text += ", in step " + std::to_string(call.step);
    return text;
  }
  return std::string("it has made no ") + (wanted == flight::kOpSend ? "send" : "receive") +
         " of this pair yet";
}

std::string lacking(const JobView& view, const Wait& wait) {
  return "rank " + std::to_string(wait.other->rank) + " has not made the " +
         (sends(view, wait) ? "receive" : "send");
}

// ---- both were made, and differ
// ----------------------------------------------------------------------------------

// NCCL compares what is sent in bytes.
std::uint64_t bytes_of(const Call& call) {
  constexpr std::uint64_t kBytes[] = {1, 1, 1, 4, 4, 8, 8, 2, 2, 4, 8, 1, 1, 1};
  auto type = static_cast<std::size_t>(call.dtype);
  return call.count * (type < std::size(kBytes) ? kBytes[type] : 1);
}

const Call* partner_of(const JobView& view, const job::CommView& comm, const Member& member, const Call& call,
                       const Member** other) {
  for (const Member& candidate : comm.members) {
    if (candidate.position == call.root_or_peer) *other = &candidate;
  }
  if (!*other) return nullptr;
  const RankView& rank = view.ranks[(*other)->process];
  bool is_send = view.op_traits(view.ranks[member.process], call) & flight::kOpSend;
  const auto& calls = rank.records().calls;
  for (std::uint64_t n = calls.first(); n < calls.end(); ++n) {
    const Call& theirs = calls.at(n);
    if (theirs.torn || theirs.number != call.number || theirs.comm != (*other)->comm_index ||
        theirs.root_or_peer != member.position)
      continue;
    if ((theirs.flags & flight::kCallFailed) || job::is_held_back(theirs)) continue;
    if (view.op_traits(rank, theirs) & (is_send ? flight::kOpRecv : flight::kOpSend)) return &theirs;
  }
  return nullptr;
}

struct Pending {
  Wait wait;
  const Call* theirs;  // the partner's side of it, null = not made
};

// The sends and receives that somebody waits in.
std::vector<Pending> pending_of(const JobView& view) {
  std::vector<Pending> all;
  for (const job::CommView& comm : view.comms) {
    for (const Member& member : comm.members) {
      const RankView& rank = view.ranks[member.process];
      const auto& calls = rank.records().calls;
      for (std::uint64_t n = calls.first(); n < calls.end(); ++n) {
        const Call& call = calls.at(n);
        if (call.torn || call.number == 0 || call.comm != member.comm_index || !job::waits_in(rank, call))
          continue;
        if (!(view.op_traits(rank, call) & (flight::kOpSend | flight::kOpRecv))) continue;
        const Member* other = nullptr;
        const Call* theirs = partner_of(view, comm, member, call, &other);
        all.push_back({{&comm, &member, &call, other}, theirs});
      }
    }
  }
  return all;
}

bool find_mismatch(Work& work) {
  const JobView& view = work.view;
  for (const auto& [mine, theirs] : pending_of(view)) {
    if (!theirs || bytes_of(*theirs) == bytes_of(*mine.call)) continue;
    const Call& call = *mine.call;
    const RankView& rank = view.ranks[mine.member->process];
    const Member* other = mine.other;
    double both = lasted(view, rank, std::max(call.enter_ns, theirs->enter_ns));
    if (both < view.params().settle) continue;
    Wait reverse{mine.comm, other, theirs, mine.member};
    Finding f;
    f.type = "argument-mismatch";
    f.severity = Severity::kHang;
    f.certainty = f.class_certainty = Certainty::kProven;
    place(view, mine, f);
    job::Side side = job::side_of(view, *other, *theirs);
    side.ranks = {other->rank};
    f.sides.push_back(std::move(side));
    f.waiting = f.comm_ranks;
    const Wait& sender = sends(view, mine) ? mine : reverse;
    const Wait& receiver = sends(view, mine) ? reverse : mine;
    f.summary = "send " + std::to_string(call.number) + " of " + *f.comm + " and its receive differ: rank " +
                std::to_string(sender.member->rank) + " makes a " + call_details(view, sender) + ", rank " +
                std::to_string(receiver.member->rank) + " a " + call_details(view, receiver);
    f.evidence = {"rank " + std::to_string(sender.member->rank) + ": " + call_details(view, sender),
                  "rank " + std::to_string(receiver.member->rank) + ": " + call_details(view, receiver)};
    f.fix = {
        "Give both sides the same shape and type: send the shape first where it varies, or pad to a "
        "fixed one (sequence length, "
        "the last micro-batch)."};
    f.at = view.seconds(std::max(call.enter_ns, theirs->enter_ns));
    work.findings.push_back(std::move(f));
    return true;
  }
  return false;
}

// ---- each waits for the other
// -------------------------------------------------------------------------------------

std::vector<std::string> fixes() {
  return {
      "Pair every send with one receive, in the same order on both ranks: look at where the two sides decide "
      "how many they make "
      "(number of micro-batches, first and last stage, a skipped batch).",
      "Where both ranks send first, put the send and the receive into one group (`batch_isend_irecv`, "
      "ncclGroupStart and "
      "ncclGroupEnd), or let one of them receive first."};
}

bool find_ring(Work& work) {
  const JobView& view = work.view;
  for (WaitGraph::Hosts hosts :
       {WaitGraph::Hosts::kInNccl, WaitGraph::Hosts::kInCuda, WaitGraph::Hosts::kQuiet}) {
    WaitGraph graph(view, hosts);
    std::vector<Wait> ring = graph.cycle();
    auto p2p = std::find_if(ring.begin(), ring.end(),
                            [&](const Wait& wait) { return left_out_message(view, wait); });
    const bool left_out = p2p != ring.end();
    if (!left_out)
      p2p = std::find_if(ring.begin(), ring.end(),
                         [&](const Wait& wait) { return is_point_to_point(view, wait); });
    if (p2p == ring.end()) continue;
    Finding f;
    f.type = "p2p-unmatched";
    f.severity = Severity::kHang;
    f.certainty = hosts == WaitGraph::Hosts::kInNccl ? Certainty::kProven : Certainty::kJudged;
    place(view, *p2p, f);
    std::uint64_t newest = 0;
    bool all_send = true;
    for (const Wait& wait : ring) {
      newest = std::max(newest, since(wait));
      all_send = all_send && is_point_to_point(view, wait) && sends(view, wait);
      std::string line = wait_text(view, wait) + " (" + call_details(view, wait) + "); ";
      if (is_point_to_point(view, wait)) {
        line += lacking(view, wait) + "; " + last_between(view, wait);
      } else {
        line += "rank " + std::to_string(wait.other->rank) + " has not made it";
      }
      f.evidence.push_back(std::move(line));
    }
    if (stood(view, ring) < kSyncSeconds) return false;
    if (left_out) {
      f.suspects = {p2p->other->rank};
      f.evidence.push_back("in its earlier rounds rank " + std::to_string(p2p->other->rank) + " made this " +
                           (sends(view, *p2p) ? "receive" : "send") + " before what it waits in now");
    }
    for (const Wait& wait : graph.stuck()) f.waiting.push_back(wait.member->rank);
    f.summary = wait_text(view, *p2p) + ": " + lacking(view, *p2p);
    const Wait& next = ring[static_cast<std::size_t>(p2p - ring.begin() + 1) % ring.size()];
    f.summary += next.member->rank == p2p->other->rank
                     ? ", it " + wait_text(view, next).substr(wait_text(view, next).find("waits"))
                     : "";
    if (all_send) f.summary += "; all of them send first";
    f.class_certainty = Certainty::kProven;
    std::vector<std::string> hosts_say = host_evidence(view, ring, hosts);
    f.evidence.insert(f.evidence.end(), hosts_say.begin(), hosts_say.end());
    f.fix = fixes();
    f.at = view.seconds(newest);
    work.findings.push_back(std::move(f));
    return true;
  }
  return false;
}

// ---- the other has ended, is on its host, or has gone on
// -----------------------------------------------------------

void find_absent(Work& work) {
  const JobView& view = work.view;
  WaitGraph graph(view, WaitGraph::Hosts::kInNccl);
  for (const Wait& wait : graph.absent()) {
    const RankView& other = view.ranks[wait.other->process];
    if (!is_point_to_point(view, wait) || graph.waits(wait.other->process) || job::creating_since(other))
      continue;
    std::uint64_t idle = idle_since(view, other);
    double waited = view.ago(since(wait));
    if (waited >= view.stall_after() / 2) work.wants_stacks.push_back(other.index);
    if (waited < view.stall_after()) continue;
    bool quiet = idle != 0 && view.ago(idle) >= view.stall_after();
    Progress p = progress_of(view, other, view.stall_after());
    Finding f;
    f.type = quiet ? "host-stall" : "p2p-unmatched";
    bool long_wait = waited >= 10 * view.stall_after();
    f.severity = !quiet          ? Severity::kWarning
                 : !p.known      ? Severity::kWarning
                 : !p.advances() ? Severity::kHang
                                 : Severity::kInfo;
    if (f.severity == Severity::kInfo && long_wait) f.severity = Severity::kWarning;
    place(view, wait, f);
    f.suspects = {wait.other->rank};
    f.waiting = {wait.member->rank};
    std::string name = "rank " + std::to_string(wait.other->rank);
    f.evidence = {call_details(view, wait), last_between(view, wait)};
    if (quiet) {
      f.summary = name +
                  (p.advances() ? " is still busy"
                   : p.known    ? " is stuck"
                                : " is") +
                  " on the host" + (p.innermost.empty() ? "" : " in " + p.innermost) + " while " +
                  wait_text(view, wait) + " (" + seconds_text(waited) + ")";
      std::vector<std::string> lines = evidence_of_progress(p);
      f.evidence.insert(f.evidence.end(), lines.begin(), lines.end());
    } else {
      f.summary = wait_text(view, wait) + " for " + seconds_text(waited) + "; " + lacking(view, wait) +
                  " and goes on with other calls";
    }
    f.evidence.push_back(threshold_text(view));
    f.fix = quiet ? fixes_of_progress(p, p.advances()) : fixes();
    f.at = view.seconds(std::max(since(wait), idle));
    work.findings.push_back(std::move(f));
    return;
  }
}

// Sends and receives whose partner has ended: the ending is the cause.
void find_orphans(Work& work) {
  const JobView& view = work.view;
  constexpr double kToFinish = 2;  // seconds in which what was under way may still complete
  for (const auto& [wait, theirs] : pending_of(view)) {
    if (theirs || !wait.other) continue;
    const Call& call = *wait.call;
    const RankView& rank = view.ranks[wait.member->process];
    const Member* other = wait.other;
    const auto& death = view.ranks[other->process].journal().death;
    if (!death || lasted(view, rank, std::max(death->time_ns, call.enter_ns)) < kToFinish) continue;
    Finding f;
    f.type = "p2p-unmatched";
    f.severity = Severity::kHang;
    f.certainty = f.class_certainty = Certainty::kProven;
    place(view, wait, f);
    f.suspects = {other->rank};
    f.waiting = {wait.member->rank};
    f.summary = wait_text(view, wait) + ", which has ended; " + lacking(view, wait);
    f.evidence = {call_details(view, wait), last_between(view, wait)};
    f.fix = {"Look at why rank " + std::to_string(other->rank) + " ended first; end the others with it.",
             "Where it ended normally, let every stage make the same number of sends and receives."};
    f.at = view.seconds(std::max(call.enter_ns, death->time_ns));
    work.findings.push_back(std::move(f));
    return;
  }
}

void run(Work& work) {
  std::size_t before = work.findings.size();
  bool has_cause = std::any_of(work.findings.begin(), work.findings.end(),
                               [](const Finding& f) { return f.severity == Severity::kHang; });
  if (has_cause) return;
  if (!find_mismatch(work) && !find_ring(work)) {
    find_orphans(work);
    if (work.findings.size() == before) find_absent(work);
  }
  if (work.findings.size() == before || work.findings.back().severity != Severity::kHang) return;
  // Collectives that wait for these ranks follow from it.
  const Finding& f = work.findings.back();
  for (std::size_t i = 0; i < work.divergences.size(); ++i) {
    const Divergence& d = work.divergences[i];
    bool concerned = std::any_of(d.missing.begin(), d.missing.end(), [&](Rank rank) {
      return std::count(f.waiting.begin(), f.waiting.end(), rank) ||
             std::count(f.suspects.begin(), f.suspects.end(), rank);
    });
    if (concerned && d.visible.kind == job::Visible::Kind::kMissing) work.explained[i] = true;
  }
}

}  // namespace

DSHANG_DETECTOR(17, "p2p-unmatched", run);

}  // namespace dshang::detect
