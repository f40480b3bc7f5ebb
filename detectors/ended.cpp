#include "detectors/ended.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "detectors/words.h"

namespace dshang::detect {
namespace {

// As Linux numbers them on x86-64 and aarch64; sigabbrev_np() is younger (glibc 2.32) than machines that this
// runs on.
constexpr const char* kSignals[] = {nullptr,  "HUP",  "INT",    "QUIT", "ILL",   "TRAP", "ABRT", "BUS",
                                    "FPE",    "KILL", "USR1",   "SEGV", "USR2",  "PIPE", "ALRM", "TERM",
                                    "STKFLT", "CHLD", "CONT",   "STOP", "TSTP",  "TTIN", "TTOU", "URG",
                                    "XCPU",   "XFSZ", "VTALRM", "PROF", "WINCH", "POLL", "PWR",  "SYS"};

std::string signal_name(int number) {
  bool named = number > 0 && number < static_cast<int>(std::size(kSignals));
  return named ? "SIG" + std::string(kSignals[number]) : "signal " + std::to_string(number);
}

// Whether call k may complete although the rank is gone.  A call that it had made may have been finished
// without anybody having seen it: one that ended normally waited for it; of one that was killed in it, time
// tells.
bool completes_without(const JobView& view, const job::RankView& ended, const job::Member& member,
                       job::Seq k) {
  constexpr double kToFinish = 2;  // seconds
  if (!member.has(k) || job::is_held_back(member.call(k))) return false;
  const job::Death& death = *ended.journal().death;
  bool normal = death.known != job::EndingKnown::kNo && !death.by_signal && death.code == 0;
  return job::is_done(member.call(k)) || normal || view.ago(death.time_ns) < kToFinish;
}

}  // namespace

bool Ended::interrupted() const {
  if (death.known == job::EndingKnown::kNo) return false;
  if (death.by_signal) return death.code == 2 || death.code == 15;
  return death.code == 128 + 2 || death.code == 128 + 15;
}

std::string Ended::text() const {
  if (for_want_of_memory()) return "was ended by the kernel's OOM killer for want of host memory (SIGKILL)";
  if (death.known == job::EndingKnown::kNo)
    return "is gone without a trace (SIGKILL likely: the kernel's OOM killer, scancel, kill -9)";
  if (death.by_signal)
    return "was ended by " + signal_name(death.code) + " (signal " + std::to_string(death.code) + ")";
  if (death.code == 0) return "ended normally (status 0)";
  return "ended with exit status " + std::to_string(death.code);
}

std::vector<Ended> endings(const JobView& view) {
  std::vector<Ended> all;
  for (const job::RankView& rank : view.ranks) {
    if (rank.journal().death) all.push_back({&rank, *rank.journal().death});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Ended& a, const Ended& b) { return a.death.time_ns < b.death.time_ns; });
  return all;
}

bool stopped_with_others(const JobView& view, const std::vector<Ended>& all, const Ended& ended) {
  bool has_status = ended.death.known != job::EndingKnown::kNo && !ended.death.by_signal;
  if (has_status || ended.for_want_of_memory() || victims_of(view, *ended.rank)) return false;
  // The same way: a launcher that ends the rest after one rank was killed sends another signal.
  auto same_way = [&](const Ended& other) {
    if (ended.death.known == job::EndingKnown::kNo) return other.death.known == job::EndingKnown::kNo;
    return other.death.by_signal && other.death.code == ended.death.code;
  };
  return std::any_of(all.begin(), all.end(), [&](const Ended& other) {
    std::uint64_t apart = std::max(other.death.time_ns, ended.death.time_ns) -
                          std::min(other.death.time_ns, ended.death.time_ns);
    return other.rank != ended.rank && same_way(other) && apart <= kTogetherNs;
  });
}

std::optional<Victims> victims_of(const JobView& view, const job::RankView& ended) {
  std::optional<Victims> best;
  for (const job::CommView& comm : view.comms) {
    const job::Member* gone = nullptr;
    for (const job::Member& member : comm.members) {
      if (&view.ranks[member.process] == &ended) gone = &member;
    }
    if (!gone) continue;
    Victims victims;
    victims.comm = &comm;
    victims.last_of_ended = gone->last();
    for (const job::Member& member : comm.members) {
      const job::RankView& rank = view.ranks[member.process];
      if (&member == gone ||
          (!rank.alive() && rank.journal().death->time_ns <= ended.journal().death->time_ns))
        continue;
      for (const job::Call* call : member.calls) {
        if (!job::waits_in(rank, *call) || completes_without(view, ended, *gone, call->number)) continue;
        victims.ranks.push_back(member.rank);
        if (!victims.call || call->number < victims.call) victims.call = call->number;
        victims.until_ns =
            std::max(victims.until_ns, rank.alive() ? view.now_ns() : rank.journal().death->time_ns);
        if (!victims.since_ns || call->enter_ns < victims.since_ns) victims.since_ns = call->enter_ns;
        break;
      }
    }
    if (!victims.ranks.empty() && (!best || victims.since_ns < best->since_ns)) best = victims;
  }
  return best;
}

bool had_cause_before(const Work& work, const Ended& ended) {
  std::uint64_t threshold = static_cast<std::uint64_t>(work.view.stall_after() * 1e9);
  for (const Divergence& d : work.divergences) {
    if (d.visible.kind == job::Visible::Kind::kArguments) {
      if (d.since_ns < ended.death.time_ns &&
          d.comm->member_of(static_cast<std::size_t>(ended.rank - work.view.ranks.data())))
        return true;
      continue;
    }
    bool concerned =
        d.comm->member_of(static_cast<std::size_t>(ended.rank - work.view.ranks.data())) != nullptr;
    if (concerned && d.since_ns + threshold < ended.death.time_ns) return true;
  }
  // It was stuck with others, and not for want of itself, when it ended.
  double ended_at = work.view.seconds(ended.death.time_ns);
  return std::any_of(work.findings.begin(), work.findings.end(), [&](const Finding& f) {
    auto has = [&](const std::vector<Rank>& ranks) {
      return std::count(ranks.begin(), ranks.end(), ended.rank->rank) > 0;
    };
    double known_after = f.certainty == Certainty::kProven ? 0 : work.view.stall_after();
    return f.severity == Severity::kHang && (has(f.suspects) || has(f.waiting)) &&
           f.at + known_after < ended_at;
  });
}

void place_at(const JobView& view, const Victims& victims, Finding& finding) {
  finding.waiting = victims.ranks;
  finding.comm = victims.comm->name;
  finding.comm_ranks = victims.comm->ranks();
  finding.call = victims.call;
  if (std::any_of(view.ranks.begin(), view.ranks.end(),
                  [&](const job::RankView& r) { return view.knows_purposes(r); })) {
    finding.agreed_until = victims.call - 1;
  }
  for (const job::Member& member : victims.comm->members) {
    if (!member.has(victims.call)) continue;
    job::Side side = job::side_of(view, member, member.call(victims.call));
    if (side.step && !finding.step) finding.step = side.step;
    side.ranks = {member.rank};
    auto same = std::find_if(finding.sides.begin(), finding.sides.end(), [&](const job::Side& s) {
      return s.op == side.op && s.count == side.count && s.site == side.site && s.module == side.module &&
             s.step == side.step && s.phase == side.phase;
    });
    if (same == finding.sides.end()) {
      finding.sides.push_back(side);
    } else {
      same->ranks.push_back(member.rank);
    }
  }
  std::string line =
      wait_text(victims.ranks) + " in call " + std::to_string(victims.call) + " of " + victims.comm->name;
  for (const job::Side& side : finding.sides) {
    line +=
        "; " + job::ranks_text(side.ranks) + ": " + call_text(side) + (side.site ? " at " + *side.site : "");
  }
  finding.evidence.push_back(line);
  finding.evidence.push_back("last call of the ended rank on " + victims.comm->name + ": " +
                             std::to_string(victims.last_of_ended));
}

void explain_missing(Work& work, const std::vector<Rank>& ended) {
  for (std::size_t i = 0; i < work.divergences.size(); ++i) {
    const Divergence& d = work.divergences[i];
    if (d.visible.kind != job::Visible::Kind::kMissing) continue;
    bool all = std::all_of(d.missing.begin(), d.missing.end(),
                           [&](Rank rank) { return std::count(ended.begin(), ended.end(), rank) > 0; });
    // Where a living rank is missing too, it may only be late because of the dead one: what it waits for is
    // that.
    if (all) work.explained[i] = true;
  }
}

}  // namespace dshang::detect
