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

constexpr std::size_t kOneByOne = 4;  // ranks

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
    return f.type == "host-stall" && std::count(f.suspects.begin(), f.suspects.end(), rank) > 0;
  });
}

struct Stalled {
  Rank rank;
  Progress progress;
  double waited;  // seconds
  TimeOut limit;
  bool advances() const { return progress.advances(); }
  bool is_stuck() const { return !advances() && progress.known && !progress.others_work(); }
  Severity severity(const JobView& view) const {
    if (is_stuck()) return Severity::kHang;
    if (!advances()) return Severity::kWarning;
    bool is_long = waited >= std::min(limit.seconds / 2, 10 * view.stall_after());
    return is_long ? Severity::kWarning : Severity::kInfo;
  }
};

// Of many ranks those in the same place and state are told as one; of few, each.
bool is_alike(const JobView& view, const Stalled& a, const Stalled& b) {
  return a.severity(view) == b.severity(view) && a.is_stuck() == b.is_stuck() &&
         a.progress.innermost == b.progress.innermost;
}

Finding make_finding(const JobView& view, const Divergence& d, const std::vector<const Stalled*>& alike) {
  const Stalled& first = *alike.front();
  const Progress& p = first.progress;
  const bool many = alike.size() > 1;
  std::vector<Rank> ranks;
  for (const Stalled* one : alike) ranks.push_back(one->rank);
  Explanation e;
  e.class_certainty = Certainty::kJudged;
  std::string doing = p.innermost.empty() ? "" : " in " + p.innermost;
  e.summary = job::ranks_text(ranks) + (many ? " are" : " is") +
              (first.advances()   ? " still busy"
               : first.is_stuck() ? " stuck"
                                  : "") +
              " on the host" + doing + " while " + wait_text(d.waiting) + " for " + (many ? "them" : "it") +
              " in " + call_at(d) + " (" + seconds_text(first.waited) + ")";
  if (many) e.evidence.push_back("of rank " + std::to_string(first.rank) + ", the others alike:");
  for (std::string& line : evidence_of_progress(p)) e.evidence.push_back(std::move(line));
  e.evidence.push_back(seconds_text(std::max(0.0, first.limit.seconds - first.waited)) +
                       " left until the framework's time-out of " + seconds_text(first.limit.seconds) + " (" +
                       first.limit.source + ")");
  e.evidence.push_back(threshold_text(view));
  e.fix = fixes_of_progress(p, first.advances());
  Finding f = finding_of(view, d, "host-stall", std::move(e));
  f.subject = "host";  // the same where ranks come and go
  f.severity = first.severity(view);
  f.certainty = Certainty::kJudged;
  f.suspects = std::move(ranks);
  f.origin.reset();
  return f;
}

void tell(Work& work, const Divergence& d, const std::vector<Stalled>& all) {
  std::vector<std::vector<const Stalled*>> groups;
  for (const Stalled& one : all) {
    auto same = std::find_if(groups.begin(), groups.end(), [&](const std::vector<const Stalled*>& group) {
      return all.size() > kOneByOne && is_alike(work.view, *group.front(), one);
    });
    if (same == groups.end()) same = groups.insert(groups.end(), std::vector<const Stalled*>());
    same->push_back(&one);
  }
  for (const auto& alike : groups) work.findings.push_back(make_finding(work.view, d, alike));
}

void run(Work& work) {
  const JobView& view = work.view;
  for (std::size_t i = 0; i < work.divergences.size(); ++i) {
    const Divergence& d = work.divergences[i];
    if (work.explained[i] || d.visible.kind != job::Visible::Kind::kMissing) continue;
    std::vector<Stalled> all;
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
      all.push_back({rank, progress_of(view, *r, view.stall_after(), since_ns),
                     seconds_between(d.since_ns, until_ns), time_out_of(view, *r)});
    }
    tell(work, d, all);
  }
}

}  // namespace

DSHANG_DETECTOR(40, "host-stall", run);

}  // namespace dshang::detect
