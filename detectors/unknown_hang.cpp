// unknown-hang: ranks wait longer than the threshold and nothing above explains it: what is known is said.
#include <algorithm>

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

void run(Work& work) {
  const JobView& view = work.view;
  const std::vector<Rank> held = held_up_by_a_host(work);
  auto is_held = [&](Rank rank) { return std::count(held.begin(), held.end(), rank) > 0; };
  if (std::any_of(work.findings.begin(), work.findings.end(),
                  [](const Finding& f) { return f.severity >= Severity::kError; }))
    return;
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
