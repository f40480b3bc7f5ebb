// rank-dead: a process gone by a signal or a non-zero status; early-return for one that ended normally while
// the others wait for it.
//
// The first death is the cause; those that follow it (a launcher stops the rest) are its consequences.  Ranks
// that were asked to stop (interrupted.cpp) are taken for dead only when others still wait a stall threshold
// later.
#include <algorithm>
#include <map>

#include "detectors/ended.h"
#include "detectors/host_memory_end.h"
#include "detectors/known_error.h"
#include "detectors/words.h"

namespace dshang::detect {
namespace {

constexpr std::size_t kToldOneByOne = 8, kToldOfMany = 4;  // ranks that ended together

// A signal that has ended one rank may be on its way to all of them (stopped_with_others).
bool others_may_follow(const JobView& view, const Ended& ended) {
  bool has_status = ended.death.known != job::EndingKnown::kNo && !ended.death.by_signal;
  bool anybody = std::any_of(view.ranks.begin(), view.ranks.end(),
                             [](const job::RankView& rank) { return rank.alive(); });
  return !has_status && anybody && view.now_ns() < ended.death.time_ns + kTogetherNs;
}

bool counts(const JobView& view, const std::vector<Ended>& all, const Ended& ended,
            const std::optional<Victims>& victims) {
  if (ended.normal()) return victims.has_value();
  if (!ended.interrupted())
    return !stopped_with_others(view, all, ended) && (victims || !others_may_follow(view, ended));
  if (!victims || victims->until_ns <= ended.death.time_ns) return false;
  return static_cast<double>(victims->until_ns - ended.death.time_ns) / 1e9 >= view.stall_after();
}

// With which it ended: it made no call after it.
const job::Exception* last_exception(const job::RankView& rank) {
  const auto& exceptions = rank.records().exceptions;
  const auto& calls = rank.records().calls;
  if (exceptions.empty()) return nullptr;
  const job::Exception& last = exceptions.at(exceptions.end() - 1);
  bool went_on = !calls.empty() && calls.at(calls.end() - 1).enter_ns > last.time_ns;
  return went_on ? nullptr : &last;
}

void add_last_exception(const JobView& view, const job::RankView& rank, Finding& finding) {
  const auto& exceptions = rank.records().exceptions;
  if (exceptions.empty()) return;
  const job::Exception& last = exceptions.at(exceptions.end() - 1);
  std::string text = view.names().text(last.type) + ": " + view.names().text(last.message);
  std::string place = last.site ? view.names().place_text(view.names().place_of(last.site)) : "";
  if (!place.empty()) text += " at " + place;
  finding.evidence.push_back("last exception of rank " + std::to_string(rank.rank) + ": " + text);
}

// A request for device memory, or a communicator for which none was left, that failed on it.
std::optional<std::size_t> allocation_failure_of(const Work& work, Rank rank) {
  for (std::size_t i = 0; i < work.findings.size(); ++i) {
    const Finding& f = work.findings[i];
    bool failed = f.type == "alloc-failed" || (f.type == "memory-pressure" && f.severity == Severity::kError);
    if (failed && std::count(f.suspects.begin(), f.suspects.end(), rank)) return i;
  }
  return std::nullopt;
}

// What it had in a group that it never closed was not issued: that is why others wait.
bool left_group_open(const Work& work, const Ended& ended) {
  return ended.normal() && std::any_of(work.findings.begin(), work.findings.end(), [&](const Finding& f) {
           return f.type == "group-unclosed" &&
                  std::count(f.suspects.begin(), f.suspects.end(), ended.rank->rank);
         });
}

Finding make_finding(Work& work, const std::vector<Ended>& together, const std::optional<Victims>& victims) {
  const JobView& view = work.view;
  const Ended& first = together.front();
  Finding f;
  f.type = first.normal() ? "early-return" : "rank-dead";
  f.severity = victims ? Severity::kHang : Severity::kError;
  bool proven = first.death.known != job::EndingKnown::kNo;
  f.certainty = f.class_certainty = proven ? Certainty::kProven : Certainty::kJudged;
  for (const Ended& ended : together) f.suspects.push_back(ended.rank->rank);
  std::sort(f.suspects.begin(), f.suspects.end());
  f.at = view.seconds(first.death.time_ns);
  if (victims) place_at(view, *victims, f);
  f.summary = "rank " + std::to_string(first.rank->rank) + " " + first.text();
  if (together.size() > 1)
    f.summary += ", and so did " + std::to_string(together.size() - 1) +
                 (first.normal() ? " more" : " more within a second");
  if (victims) {
    f.summary += " after call " + std::to_string(victims->last_of_ended) + " of " + victims->comm->name +
                 "; " + wait_text(victims->ranks) + " for it in call " + std::to_string(victims->call);
  }
  std::map<std::string, std::size_t> more;
  const std::size_t told = together.size() > kToldOneByOne ? kToldOfMany : together.size();
  for (std::size_t i = 0; i < together.size(); ++i) {
    const Ended& ended = together[i];
    if (i >= told) {
      ++more[ended.text()];
      continue;
    }
    f.evidence.push_back("rank " + std::to_string(ended.rank->rank) + " (pid " +
                         std::to_string(ended.rank->records().pid) + ") " + ended.text());
    if (ended.for_want_of_memory()) {
      for (std::string& line : evidence_of_host_memory(view, ended)) f.evidence.push_back(std::move(line));
    }
    add_last_exception(view, *ended.rank, f);
  }
  for (const auto& [how, count] : more) f.evidence.push_back("and " + std::to_string(count) + " more " + how);
  if (!f.step && first.rank->records().step != job::kNoStep) f.step = first.rank->records().step;
  f.consequence_of = allocation_failure_of(work, first.rank->rank);
  if (first.normal()) {
    f.fix = {
        "Let every rank make the same number of steps and leave the training loop together: equal numbers of "
        "batches "
        "(`drop_last=True`), or an all-reduced stop flag.",
        "If a rank ends on purpose, end the others with it."};
  } else if (first.for_want_of_memory()) {
    f.fix = fixes_of_host_memory(view, first);
  } else if (first.death.known == job::EndingKnown::kNo || (first.death.by_signal && first.death.code == 9)) {
    f.fix = {
        "Look for the kernel's OOM killer (`dmesg`, the cgroup's memory.events) and for whoever sent "
        "SIGKILL: host memory of "
        "the node is the usual cause.",
        "The other ranks cannot recover: stop the job and restart from the last checkpoint."};
  } else {
    f.fix = {
        "Read this rank's own output first: what it printed last is the cause, the time-out of the others is "
        "not.",
        "The other ranks cannot recover: stop the job and restart from the last checkpoint."};
  }
  // A failed allocation is explained by its own finding, and SIGKILL comes from outside.
  bool killed = first.death.by_signal && first.death.code == 9;
  if (!first.normal() && !killed && !f.consequence_of) {
    if (const job::Exception* last = last_exception(*first.rank)) tell_known(view, *last, f.evidence, f.fix);
  }
  return f;
}

void run(Work& work) {
  const JobView& view = work.view;
  std::vector<Ended> all = endings(view);
  std::vector<Rank> gone;
  for (const Ended& ended : all) gone.push_back(ended.rank->rank);
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::optional<Victims> victims = victims_of(view, *all[i].rank);
    if (!counts(view, all, all[i], victims) || had_cause_before(work, all[i]) ||
        left_group_open(work, all[i]))
      continue;
    std::vector<Ended> together = {all[i]};
    for (std::size_t j = i + 1; j < all.size() && !all[i].normal(); ++j) {
      bool soon = all[j].death.time_ns - all[i].death.time_ns <= kTogetherNs;
      if (soon && !all[j].normal() && !all[j].interrupted() && !victims_of(view, *all[j].rank))
        together.push_back(all[j]);
    }
    for (std::size_t j = i + 1; j < all.size() && all[i].normal(); ++j) {
      std::optional<Victims> theirs = all[j].normal() ? victims_of(view, *all[j].rank) : std::nullopt;
      if (theirs && theirs->comm == victims->comm && theirs->call == victims->call)
        together.push_back(all[j]);
    }
    work.findings.push_back(make_finding(work, together, victims));
    explain_missing(work, gone);
    return;  // the later ones follow from it
  }
}

}  // namespace

DSHANG_DETECTOR(20, "rank-dead", run);

}  // namespace dshang::detect
