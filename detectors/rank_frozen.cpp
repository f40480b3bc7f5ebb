// rank-frozen: the ranks agree in what they call, and one of them makes no progress: its process is stopped
// (T) or in an uninterruptible wait of the kernel (D); its stream has not reached a call that the others have
// started; or it is still in a call that all others have finished.
//
// Judged by the stall threshold.  It cannot tell what holds a stream up: a kernel, a copy or a callback of
// the program's own is queued before the call and was not recorded.
#include <algorithm>

#include "detectors/progress.h"
#include "detectors/words.h"

namespace dshang::detect {
namespace {

using job::Call;
using job::CommView;
using job::Member;
using job::RankView;

constexpr double kPollerFresh = 5;  // seconds within which the GPU was asked

struct Frozen {
  std::vector<std::size_t> ranks;  // indices into JobView::ranks
  const CommView* comm = nullptr;
  job::Seq call = 0;
  std::vector<Rank> waiting;
  std::uint64_t since_ns = 0;
  std::string what, fix;
};

// Since when all looks at the process found it in one of these states; 0 = the last did not.
std::uint64_t held_since(const RankView& rank, char state) {
  const auto& samples = rank.journal().samples;
  std::uint64_t since = 0;
  for (auto at = samples.rbegin(); at != samples.rend() && at->state == state; ++at) since = at->time_ns;
  return since;
}

const Call* oldest_outstanding(const JobView& view, const Member& member) {
  for (const Call* call : member.calls) {
    if (job::waits_in(view.ranks[member.process], *call)) return call;
  }
  return nullptr;
}

// Others that wait in a communicator that this rank belongs to, where all of it was heard from.
std::optional<Frozen> victims_of(const JobView& view, std::size_t rank) {
  std::optional<Frozen> best;
  for (const CommView& comm : view.comms) {
    if (!comm.member_of(rank)) continue;
    Frozen frozen;
    frozen.comm = &comm;
    for (const Member& member : comm.members) {
      const Call* call = member.process == rank ? nullptr : oldest_outstanding(view, member);
      if (!call) continue;
      frozen.waiting.push_back(member.rank);
      frozen.since_ns = std::max(frozen.since_ns, call->enter_ns);
      frozen.call = frozen.call ? std::min(frozen.call, static_cast<job::Seq>(call->number)) : call->number;
    }
    if (!frozen.waiting.empty() && (!best || frozen.since_ns < best->since_ns)) best = std::move(frozen);
  }
  return best;
}

std::optional<Frozen> stopped(const JobView& view) {
  for (std::size_t r = 0; r < view.ranks.size(); ++r) {
    const RankView& rank = view.ranks[r];
    for (char state : {'T', 'D'}) {
      std::uint64_t since = held_since(rank, state);
      if (!since || lasted(view, rank, since) < view.stall_after()) continue;
      std::optional<Frozen> frozen = victims_of(view, r);
      if (!frozen || lasted(view, rank, frozen->since_ns) < view.stall_after()) continue;
      if (state == 'D' && progress_of(view, rank, view.stall_after()).advances()) continue;
      frozen->ranks = {r};
      const job::HostSample& newest = rank.journal().samples.back();
      std::string where = newest.syscall.empty() ? newest.wchan : newest.syscall;
      std::string id = "its process (pid " + std::to_string(rank.records().pid) + ")";
      if (state == 'T') {
        frozen->what = id + " has been stopped (state T) for " + seconds_text(lasted(view, rank, since));
        frozen->fix =
            "Find out who stopped it (Ctrl-Z, SIGSTOP, a debugger, the container's freezer) and let it go "
            "on: kill -CONT " +
            std::to_string(rank.records().pid) + ".";
      } else {
        frozen->what = id + " has been in an uninterruptible wait of the kernel (state D) for " +
                       seconds_text(lasted(view, rank, since)) + (where.empty() ? "" : ", in " + where);
        frozen->fix =
            "The process waits for a device or file system that does not answer: look at `dmesg` (NFS, a "
            "disk, the NVIDIA driver's "
            "Xid errors) of " +
            rank.records().host + "; it cannot be killed before that answers.";
      }
      return frozen;
    }
  }
  return std::nullopt;
}

bool gpu_is_watched(const JobView& view, const RankView& rank) {
  const auto& records = rank.records();
  return records.poll_ns != 0 && lasted(view, rank, records.poll_ns) < kPollerFresh &&
         records.poll_stuck_ns == 0;
}

// No call is outstanding before it, on any stream (streams wait for each other, as torch's do): what holds it
// up is not recorded.
bool is_first(const RankView& rank, const Call& call) {
  const auto& calls = rank.records().calls;
  for (std::uint64_t n = calls.first(); n < calls.end() && &calls.at(n) != &call; ++n) {
    const Call& before = calls.at(n);
    bool same_group = call.group && before.group == call.group;
    if (!before.torn && !same_group && job::is_outstanding(before)) return false;
  }
  return true;
}

bool is_not_reached(const JobView& view, const RankView& rank, const Call& call) {
  return (call.flags & flight::kCallStartMarked) &&
         !(call.flags & (flight::kCallStarted | flight::kCallDone | flight::kCallProgressUnknown)) &&
         gpu_is_watched(view, rank) && is_first(rank, call);
}

// Until the first of the members ended.
double lasted_on_all(const JobView& view, const CommView& comm, std::uint64_t since_ns) {
  double shortest = view.ago(since_ns);
  for (const Member& member : comm.members)
    shortest = std::min(shortest, lasted(view, view.ranks[member.process], since_ns));
  return shortest;
}

// The first call that is not done everywhere, where all have made it.
std::optional<Frozen> held_up(const JobView& view) {
  for (const CommView& comm : view.comms) {
    if (!comm.complete() || comm.members.size() < 2) continue;
    job::Seq k = UINT64_MAX, last = UINT64_MAX;
    for (const Member& member : comm.members) {
      if (const Call* call = oldest_outstanding(view, member))
        k = std::min(k, static_cast<job::Seq>(call->number));
      last = std::min(last, member.last());
    }
    if (k > last) continue;
    Frozen frozen{{}, &comm, k, {}, 0, "", ""};
    std::size_t done = 0, started = 0, not_reached = 0;
    for (const Member& member : comm.members) {
      if (!member.has(k)) {
        frozen.since_ns = UINT64_MAX;
        break;
      }
      const Call& call = member.call(k);
      frozen.since_ns = std::max({frozen.since_ns, call.enter_ns, call.done_ns});
      if (job::is_done(call)) {
        ++done;
      } else if (call.flags & flight::kCallStarted) {
        ++started;
      } else if (is_not_reached(view, view.ranks[member.process], call)) {
        ++not_reached;
      }
    }
    if (frozen.since_ns == UINT64_MAX || lasted_on_all(view, comm, frozen.since_ns) < view.stall_after())
      continue;
    std::size_t size = comm.members.size();
    bool one_left = done + 1 == size, one_not_reached = not_reached == 1 && done + started + 1 == size;
    if (!one_left && !one_not_reached) continue;
    for (const Member& member : comm.members) {
      const Call& call = member.call(k);
      bool left = one_left ? !job::is_done(call) : is_not_reached(view, view.ranks[member.process], call);
      if (left) {
        frozen.ranks.push_back(member.process);
      } else if (oldest_outstanding(view, member) || !one_left) {
        frozen.waiting.push_back(member.rank);
      }
    }
    const Member& frozen_member = *comm.member_of(frozen.ranks[0]);
    bool reached = frozen_member.call(k).flags & flight::kCallStarted;
    std::string name = "call " + std::to_string(k) + " of " + comm.name;
    if (one_left && (reached || not_reached == 0)) {
      frozen.what = "it is still in " + name + ", which all other ranks have finished";
    } else {
      frozen.what = "its stream has not reached " + name + ", which the others have " +
                    (one_left ? "finished" : "started");
    }
    frozen.fix = reached ? "The GPU or link of this rank does not advance: look at it first (`nvidia-smi`, "
                           "Xid errors in `dmesg`, link errors, "
                           "another process on the device)."
                         : "Something of the program's own is queued before the call on this rank and does "
                           "not end: a kernel, a copy, or a host "
                           "callback. Look at `py-spy dump` and at the GPU (`nvidia-smi`, Xid errors in "
                           "`dmesg`); try CUDA_LAUNCH_BLOCKING=1 on "
                           "one node to see which kernel it is.";
    return frozen;
  }
  return std::nullopt;
}

Finding make_finding(const JobView& view, const Frozen& frozen) {
  Finding f;
  f.type = "rank-frozen";
  f.severity = Severity::kHang;
  for (std::size_t rank : frozen.ranks) f.suspects.push_back(view.ranks[rank].rank);
  f.waiting = frozen.waiting;
  f.comm = frozen.comm->name;
  f.comm_ranks = frozen.comm->ranks();
  f.call = frozen.call;
  f.at = view.seconds(frozen.since_ns);
  f.summary = job::ranks_text(f.suspects) + " is frozen: " + frozen.what;
  if (!frozen.waiting.empty()) {
    f.summary += "; " + wait_text(frozen.waiting) + " (" + seconds_text(view.ago(frozen.since_ns)) + ")";
    f.evidence.push_back(wait_text(frozen.waiting) + " in call " + std::to_string(frozen.call) + " of " +
                         frozen.comm->name + " or behind it, for " + seconds_text(view.ago(frozen.since_ns)));
  }
  for (const Member& member : frozen.comm->members) {
    if (!member.has(frozen.call)) continue;
    job::Side side = job::side_of(view, member, member.call(frozen.call));
    if (side.step && !f.step) f.step = side.step;
    auto same = std::find_if(f.sides.begin(), f.sides.end(), [&](const job::Side& s) {
      return s.op == side.op && s.count == side.count && s.site == side.site && s.module == side.module &&
             s.phase == side.phase;
    });
    if (same == f.sides.end()) f.sides.push_back(side), same = f.sides.end() - 1;
    same->ranks.push_back(member.rank);
  }
  for (const job::Side& side : f.sides) {
    f.evidence.push_back(job::ranks_text(side.ranks) + ": " + call_text(side) +
                         (side.site ? ", at " + *side.site : ""));
  }
  f.evidence.push_back("the calls of all ranks agree as far as they go");
  f.evidence.push_back(threshold_text(view));
  f.fix = {frozen.fix, "If it happens again on the same machine or device, take that out of the job."};
  return f;
}

void run(Work& work) {
  const JobView& view = work.view;
  bool explained_already = std::any_of(work.findings.begin(), work.findings.end(),
                                       [](const Finding& f) { return f.severity == Severity::kHang; });
  if (explained_already) return;
  std::optional<Frozen> frozen = stopped(view);
  if (!frozen) frozen = held_up(view);
  if (!frozen) return;
  Finding f = make_finding(view, *frozen);
  for (std::size_t i = 0; i < work.divergences.size(); ++i) {
    const Divergence& d = work.divergences[i];
    bool missed = std::any_of(d.missing.begin(), d.missing.end(), [&](Rank rank) {
      return std::count(f.suspects.begin(), f.suspects.end(), rank);
    });
    if (missed) work.explained[i] = true;
  }
  work.findings.push_back(std::move(f));
}

}  // namespace

DSHANG_DETECTOR(18, "rank-frozen", run);

}  // namespace dshang::detect
