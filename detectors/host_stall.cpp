// host-stall: the others wait for a rank that has no call outstanding: it is busy, or stuck, on the host.
//
// Judged on its CPU time, I/O and Python stacks over the last threshold: `info` while any of them advances,
// `warning` after half of the framework's time-out (or ten thresholds), `hang` only when nothing advances.
#include <algorithm>
#include <cstdlib>

#include "detectors/progress.h"
#include "detectors/words.h"

namespace dshang::detect {
namespace {

struct TimeOut {
  double seconds;
  std::string source;
};

std::string fact(const JobView& view, const job::RankView& rank, std::string_view key) {
  const auto& facts = rank.records().facts;
  for (std::uint64_t n = facts.end(); n-- > facts.first();) {
    if (view.names().text(facts.at(n).key) == key) return view.names().text(facts.at(n).value);
  }
  return {};
}

TimeOut time_out_of(const JobView& view, const job::RankView& rank) {
  if (std::string text = fact(view, rank, "pg.timeout_seconds"); !text.empty())
    return {std::atof(text.c_str()), "the process group's"};
  if (std::string text = fact(view, rank, "env.DEEPSPEED_TIMEOUT"); !text.empty()) {
    return {60 * std::atof(text.c_str()), "DEEPSPEED_TIMEOUT, in minutes"};
  }
  return {600, "assumed: the default of torch 2.2 and later and of DeepSpeed after 0.19.5"};
}

// A rank is told once, where it is waited for longest: other communicators wait for the same reason.
bool is_told(const Work& work, Rank rank) {
  return std::any_of(work.findings.begin(), work.findings.end(), [&](const Finding& f) {
    return f.type == "host-stall" && f.suspects == std::vector<Rank>{rank};
  });
}

void run(Work& work) {
  const JobView& view = work.view;
  for (std::size_t i = 0; i < work.divergences.size(); ++i) {
    const Divergence& d = work.divergences[i];
    if (work.explained[i] || d.visible.kind != job::Visible::Kind::kMissing) continue;
    for (Rank rank : d.missing) {
      const job::RankView* r = view.by_rank(rank);
      if (!r) continue;
      std::uint64_t idle_ns = idle_since(view, *r);
      if (idle_ns == 0) continue;  // it waits in a call itself
      // A rank that was ended later was stuck until then.
      std::uint64_t until_ns = r->alive() ? view.now_ns() : r->journal().death->time_ns;
      std::uint64_t since_ns = std::max(d.since_ns, idle_ns);  // the wait, and with it the judgement, begins
      double stalled = seconds_between(since_ns, until_ns);
      if (stalled < view.stall_after() / 2) continue;
      if (r->alive()) work.wants_stacks.push_back(r->index);
      if (stalled < view.stall_after()) continue;
      work.explained[i] = true;
      if (is_told(work, rank)) continue;
      Progress p = progress_of(view, *r, view.stall_after(), since_ns);
      TimeOut limit = time_out_of(view, *r);
      double waited = seconds_between(d.since_ns, until_ns);
      bool advances = p.advances();
      Explanation e;
      e.class_certainty = Certainty::kJudged;
      std::string doing = p.innermost.empty() ? "" : " in " + p.innermost;
      e.summary = "rank " + std::to_string(rank) +
                  (advances                      ? " is still busy"
                   : p.known && !p.others_work() ? " is stuck"
                                                 : " is") +
                  " on the host" + doing + " while " + wait_text(d.waiting) + " for it in " + call_at(d) +
                  " (" + seconds_text(waited) + ")";
      e.evidence = evidence_of_progress(p);
      e.evidence.push_back(seconds_text(std::max(0.0, limit.seconds - waited)) +
                           " left until the framework's time-out of " + seconds_text(limit.seconds) + " (" +
                           limit.source + ")");
      e.evidence.push_back(threshold_text(view));
      e.fix = fixes_of_progress(p, advances);
      Finding f = finding_of(view, d, "host-stall", std::move(e));
      bool long_wait = waited >= std::min(limit.seconds / 2, 10 * view.stall_after());
      f.severity = advances                      ? (long_wait ? Severity::kWarning : Severity::kInfo)
                   : p.known && !p.others_work() ? Severity::kHang
                                                 : Severity::kWarning;
      f.certainty = Certainty::kJudged;
      f.suspects = {rank};
      f.origin.reset();
      work.findings.push_back(std::move(f));
    }
  }
}

}  // namespace

DSHANG_DETECTOR(40, "host-stall", run);

}  // namespace dshang::detect
