#include "core/job/report.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <set>

namespace dshang::job {
namespace {

std::string iso_8601(std::uint64_t real_ns) {
  std::time_t seconds = static_cast<std::time_t>(real_ns / 1'000'000'000);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

bool grew_from(const std::vector<Rank>& before, const std::vector<Rank>& now) {
  return std::all_of(before.begin(), before.end(),
                     [&](Rank rank) { return std::count(now.begin(), now.end(), rank) > 0; });
}

bool is_ending(const Finding& f) { return f.type == "rank-dead" || f.type == "interrupted"; }

// A judged state of several ranks (memory that is nearly full) that some of them have left.
bool has_shrunk(const Finding& a, const Finding& b) {
  bool is_state =
      !a.subject.empty() && a.certainty == Certainty::kJudged && b.certainty == Certainty::kJudged;
  return is_state && a.type == b.type && !b.suspects.empty() && a.suspects != b.suspects &&
         grew_from(b.suspects, a.suspects);
}

// `b` is the same trouble told again: an explanation may grow (class, positions, suspects) as more is
// recorded.
bool same_trouble(const Finding& a, const Finding& b) {
  bool may_grow =
      !a.suspects.empty() || !a.subject.empty();  // from nobody to somebody only where it is clear
  if (a.type == b.type && a.subject == b.subject && a.comm == b.comm &&
      (a.suspects == b.suspects || (may_grow && grew_from(a.suspects, b.suspects)) || has_shrunk(a, b)))
    return true;
  // Ranks that were ended because they hung do not explain the hang.
  if (is_ending(b) && !is_ending(a)) return false;
  bool both_hang = a.severity == Severity::kHang && b.severity == Severity::kHang;
  return both_hang && a.comm && a.comm == b.comm && a.call == b.call;
}

bool is_told_differently(const Finding& a, const Finding& b) {
  bool others = a.suspects != b.suspects && !has_shrunk(a, b);
  return a.type != b.type || a.severity != b.severity || others || a.call != b.call || a.origin != b.origin ||
         a.measure < b.measure;
}

// Ranks it speaks of have ended since: what they waited for cannot be seen any more, and did not come, unless
// all of them ended well.
bool is_frozen(const Job& job, const Finding& f) {
  auto concerned = [&](Rank rank) {
    return std::count(f.suspects.begin(), f.suspects.end(), rank) ||
           std::count(f.waiting.begin(), f.waiting.end(), rank);
  };
  bool any = false, all_well = true;
  for (const auto& process : job.processes) {
    Rank rank = process->records.world_rank ? static_cast<Rank>(process->records.world_rank) - 1
                                            : process->records.rank;
    if (!concerned(rank)) continue;
    const std::optional<Death>& death = process->journal.death;
    any = any || death;
    all_well = all_well && death && death->known != EndingKnown::kNo && !death->by_signal && death->code == 0;
  }
  return any && !all_well;
}

bool is_wrong(const std::vector<Finding>& findings) {
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& f) { return !f.resolved && f.severity >= Severity::kError; });
}

// After an error or a hang nobody was interrupted "with nothing wrong before".
bool was_wrong_before(const std::vector<Finding>& known) {
  return is_wrong(known) &&
         std::none_of(known.begin(), known.end(), [](const Finding& f) { return f.type == "interrupted"; });
}

void forget_interrupted(std::vector<Finding>& findings) {
  auto at = std::find_if(findings.begin(), findings.end(),
                         [](const Finding& f) { return f.type == "interrupted"; });
  if (at == findings.end()) return;
  auto index = static_cast<std::size_t>(at - findings.begin());
  findings.erase(at);
  for (Finding& f : findings) {
    if (f.consequence_of == index) f.consequence_of.reset();
    if (f.consequence_of && *f.consequence_of > index) --*f.consequence_of;
  }
}

// Endings after a first finding are its consequences: the ranks were ended because they hung.
void link_later_endings(const Job& job, const std::vector<Finding>& known, std::vector<Finding>& current) {
  auto named = [](const Finding& f, Rank rank) {
    return std::count(f.suspects.begin(), f.suspects.end(), rank) ||
           std::count(f.waiting.begin(), f.waiting.end(), rank);
  };
  for (Finding& f : current) {
    bool is_ending = f.type == "rank-dead" || f.type == "early-return" || f.type == "unknown-hang";
    auto before =
        std::find_if(known.begin(), known.end(), [&](const Finding& old) { return same_trouble(old, f); });
    bool was_first = before != known.end() && !before->consequence_of;
    if (!is_ending || f.consequence_of || was_first || !is_frozen(job, f)) continue;
    for (std::size_t cause = 0; cause < current.size() && !f.consequence_of; ++cause) {
      const Finding& old = current[cause];
      bool was_known =
          std::any_of(known.begin(), known.end(), [&](const Finding& one) { return same_trouble(one, old); });
      if (&old == &f || !was_known || old.resolved || old.severity != Severity::kHang || old.consequence_of ||
          old.at >= f.at)
        continue;
      const std::vector<Rank>& ranks = f.suspects.empty() ? f.waiting : f.suspects;
      if (std::all_of(ranks.begin(), ranks.end(), [&](Rank rank) { return named(old, rank); }))
        f.consequence_of = cause;
    }
  }
}

}  // namespace

Report FindingHistory::update(const Job& job, Analysis analysis, bool* has_news) {
  double now = job.journal.now_ns > job.journal.start_ns
                   ? static_cast<double>(job.journal.now_ns - job.journal.start_ns) / 1e9
                   : 0;
  std::vector<Finding> current = std::move(analysis.findings);
  if (was_wrong_before(known_)) forget_interrupted(current);
  std::vector<std::pair<std::size_t, std::size_t>>
      followed;  // what is kept, and its cause among the known ones
  for (const Finding& old : known_) {
    auto again =
        std::find_if(current.begin(), current.end(), [&](const Finding& f) { return same_trouble(old, f); });
    if (again != current.end() && old.resolved && !again->resolved && again->at > *old.resolved) {
      again->found = now;
      again->is_news = true;  // it happened a second time
      continue;
    }
    if (again != current.end()) {
      again->at = std::min(again->at, old.at);
      again->found = old.found;
      again->is_news = is_told_differently(old, *again);
      again->measure = std::max(again->measure, old.measure);
      continue;
    }
    if (old.type == "interrupted" && is_wrong(current)) continue;  // then something was wrong, and is said
    Finding ended = old;
    ended.consequence_of.reset();
    // A proven disagreement does not go away; a judged one that is no longer found has ended.
    ended.is_news = !ended.resolved && ended.certainty == Certainty::kJudged && !is_frozen(job, ended);
    if (ended.is_news) ended.resolved = now;
    if (old.consequence_of) followed.emplace_back(current.size(), *old.consequence_of);
    current.push_back(std::move(ended));
  }
  for (auto [at, cause] : followed) {
    for (std::size_t i = 0; i < current.size() && !current[at].consequence_of; ++i)
      if (i != at && same_trouble(known_[cause], current[i])) current[at].consequence_of = i;
  }
  for (Finding& f : current) {
    bool is_new =
        std::none_of(known_.begin(), known_.end(), [&](const Finding& old) { return same_trouble(old, f); });
    if (!is_new) continue;
    f.found = now;
    f.is_news = !f.resolved;  // what was over when it was found needs no block
  }
  link_later_endings(job, known_, current);
  put_in_order(current);
  *has_news = std::any_of(current.begin(), current.end(), [](const Finding& f) { return f.is_news; });
  known_ = current;

  Report report;
  std::set<std::string> hosts;
  for (const auto& process : job.processes) {
    report.world_size = std::max(report.world_size, process->records.world_size);
    hosts.insert(process->records.host);
  }
  report.nodes = std::max<std::int32_t>(1, static_cast<std::int32_t>(hosts.size()));
  report.dir = job.journal.dir;
  report.started = iso_8601(job.journal.start_real_ns);
  report.as_of = now;
  report.findings = std::move(current);
  report.not_checked = std::move(analysis.not_checked);
  return report;
}

std::string verdict_of(const Report& report) {
  Severity worst = Severity::kInfo;
  for (const Finding& f : report.findings) {
    if (!f.resolved) worst = std::max(worst, f.severity);
  }
  if (worst != Severity::kInfo) return text_of(worst);
  bool unheard =
      std::any_of(report.not_checked.begin(), report.not_checked.end(), [](const std::string& line) {
        return line.find("not heard from") != line.npos || line.find("heard from") != line.npos;
      });
  return unheard ? "undecided" : "healthy";
}

}  // namespace dshang::job
