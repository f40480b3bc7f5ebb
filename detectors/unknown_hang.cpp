// unknown-hang: ranks wait longer than the threshold and nothing above explains it: what is known is said.
#include <algorithm>
#include <map>

#include "core/job/recorder_import.h"
#include "detectors/known_facts.h"
#include "detectors/words.h"

namespace dshang::detect {
namespace {

struct Stall {
  const job::CommView* comm = nullptr;
  job::Seq call = 0;
  std::vector<Rank> waiting;
  std::uint64_t since_ns = 0;
};

// All members have made a call that is not done, and nobody is missing.
std::optional<Stall> all_inside(const job::CommView& comm) {
  Stall stall;
  stall.comm = &comm;
  for (const job::Member& member : comm.members) {
    const job::Call* oldest = nullptr;
    for (const job::Call* call : member.calls) {
      if (job::is_outstanding(*call)) {
        oldest = call;
        break;
      }
    }
    if (!oldest) return std::nullopt;
    stall.waiting.push_back(member.rank);
    stall.call = std::max(stall.call, static_cast<job::Seq>(oldest->number));
    stall.since_ns = std::max(stall.since_ns, oldest->enter_ns);
  }
  if (!comm.complete() || comm.members.size() < 2) return std::nullopt;
  return stall;
}

Finding make_finding(const JobView& view, const Stall& stall) {
  Finding f;
  f.type = "unknown-hang";
  f.severity = Severity::kHang;
  f.comm = stall.comm->name;
  f.comm_ranks = stall.comm->ranks();
  f.waiting = stall.waiting;
  f.call = stall.call;
  f.at = view.seconds(stall.since_ns);
  f.summary = wait_text(stall.waiting) + " in call " + std::to_string(stall.call) + " of " +
              stall.comm->name + " for " + seconds_text(view.ago(stall.since_ns)) +
              "; what was recorded does not say why";
  f.evidence = {threshold_text(view)};
  f.fix = {
      "Look at the stacks of all ranks, and at the GPUs and links of the ranks that wait (`nvidia-smi`, "
      "`NCCL_DEBUG=INFO`).",
      "If it is repeatable, run it once more with markers (`dshang.h`) or the probe, so that purposes are "
      "recorded."};
  return f;
}

// Ranks that wait in a send or receive, each with its partner.
std::vector<std::pair<Rank, Rank>> partners_of(const JobView& view) {
  std::vector<std::pair<Rank, Rank>> all;
  for (const job::CommView& comm : view.comms) {
    for (const job::Member& member : comm.members) {
      const job::RankView& rank = view.ranks[member.process];
      const auto& calls = rank.records().calls;
      for (std::uint64_t n = calls.first(); n < calls.end(); ++n) {
        const job::Call& call = calls.at(n);
        bool waits = !call.torn && call.comm == member.comm_index && job::is_outstanding(call) &&
                     (view.op_traits(rank, call) & (flight::kOpSend | flight::kOpRecv));
        for (const job::Member& other : comm.members) {
          if (waits && other.position == call.root_or_peer) all.emplace_back(member.rank, other.rank);
        }
      }
    }
  }
  return all;
}

// Ranks that wait for one that is busy on its host, or for one that waits for it, and so on: they are told
// of.
std::vector<Rank> held_up_by_a_host(const Work& work) {
  std::vector<Rank> held;
  auto add = [&](Rank rank) {
    bool is_new = !std::count(held.begin(), held.end(), rank);
    if (is_new) held.push_back(rank);
    return is_new;
  };
  for (const Finding& f : work.findings) {
    if (f.type != "host-stall") continue;
    for (Rank rank : f.suspects) add(rank);
    for (Rank rank : f.waiting) add(rank);
  }
  const std::vector<std::pair<Rank, Rank>> partners =
      held.empty() ? std::vector<std::pair<Rank, Rank>>{} : partners_of(work.view);
  for (bool more = !held.empty(); more;) {
    more = false;
    for (auto [rank, peer] : partners)
      more = (std::count(held.begin(), held.end(), peer) && add(rank)) || more;
    for (const Divergence& d : work.divergences) {
      bool concerned = std::any_of(d.missing.begin(), d.missing.end(),
                                   [&](Rank rank) { return std::count(held.begin(), held.end(), rank); });
      for (Rank rank : d.waiting) more = (concerned && add(rank)) || more;
    }
  }
  return held;
}

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

bool tell_unfinished(Work& work) {
  const JobView& view = work.view;
  std::vector<Unfinished> all = finished_by_others(view);
  if (all.empty()) return false;
  const Unfinished& first = *std::min_element(
      all.begin(), all.end(),
      [](const Unfinished& a, const Unfinished& b) { return a.call->enter_ns < b.call->enter_ns; });
  Finding f = make_finding(view, {first.comm, first.call->number, {}, first.call->enter_ns});
  for (const Unfinished& one : all) {
    f.suspects.push_back(one.member->rank);
    f.waiting.push_back(one.member->rank);
    job::Side side = job::side_of(view, *one.member, *one.call);
    f.evidence.push_back("rank " + std::to_string(one.member->rank) + " has not finished call " +
                         std::to_string(one.call->number) + " of " + one.comm->name + " (" + call_text(side) +
                         "), which rank " + std::to_string(one.finished_on) +
                         " has: nobody finishes it before all have given their part");
  }
  std::rotate(f.evidence.begin(), f.evidence.begin() + 1, f.evidence.end());  // the threshold last
  f.summary = job::ranks_text(f.suspects) + (all.size() == 1 ? " has" : " have") +
              " not finished calls that others of the same communicators have finished, for " +
              seconds_text(view.ago(first.call->enter_ns)) +
              ": the GPU, its driver or its links stand still there";
  f.fix = {
      "Look at the kernel log of that machine for NVRM Xid lines (`dmesg`), at `nvidia-smi -q` (ECC, retired "
      "pages, link errors), and whether "
      "the driver still answers.",
      "Restart without that GPU or machine; a failing one comes back."};
  work.findings.push_back(std::move(f));
  return true;
}

void run(Work& work) {
  const JobView& view = work.view;
  const std::vector<Rank> held = held_up_by_a_host(work);
  auto is_held = [&](Rank rank) { return std::count(held.begin(), held.end(), rank) > 0; };
  if (std::any_of(work.findings.begin(), work.findings.end(),
                  [](const Finding& f) { return f.severity >= Severity::kError; }))
    return;
  if (tell_unfinished(work)) return;
  for (std::size_t i = 0; i < work.divergences.size(); ++i) {
    const Divergence& d = work.divergences[i];
    if (work.explained[i] || d.visible.kind != job::Visible::Kind::kMissing) continue;
    if (!d.comm->complete()) continue;  // what a rank that was not heard from does is not known
    if (std::any_of(d.missing.begin(), d.missing.end(), is_held)) continue;
    std::uint64_t newest = d.since_ns;
    for (Rank rank : d.missing) newest = std::max(newest, last_activity(view, *view.by_rank(rank)));
    if (view.ago(newest) < view.stall_after() || alive(view, d.waiting).empty()) continue;
    Stall stall{d.comm, d.visible.call, d.waiting, d.since_ns};
    Finding f = make_finding(view, stall);
    f.sides = d.sides;
    f.step = d.step;
    std::vector<std::string> evidence = evidence_of(view, d);
    f.evidence.insert(f.evidence.begin(), evidence.begin(), evidence.end());
    work.findings.push_back(std::move(f));
    return;
  }
  for (const job::CommView& comm : view.comms) {
    std::optional<Stall> stall = all_inside(comm);
    if (!stall || view.ago(stall->since_ns) < view.stall_after()) continue;
    std::vector<Rank> living = alive(view, stall->waiting);
    if (living.empty() || std::any_of(living.begin(), living.end(), is_held)) continue;
    work.findings.push_back(make_finding(view, *stall));
    return;
  }
}

}  // namespace

DSHANG_DETECTOR(90, "unknown-hang", run);

}  // namespace dshang::detect
