// alloc-failed: a request for device memory failed and was not satisfied by trying again.
//
// A caching allocator frees what it holds and asks again, so a failure whose repetition succeeded is no
// finding.  A program may also catch the exception and go on (a search for the largest batch): then the
// finding is over, unless the ranks parted behind it.  It is told once the rank has ended, nobody caught the
// exception, the ranks parted, or nothing came of it for a stall threshold.  Ranks that failed for the same
// reason (alloc_cause.h) in the same step are one finding, told with the numbers of the first.  What the
// memory was used for, and what would make it fit, is in alloc_story.h.
#include <algorithm>
#include <tuple>

#include "detectors/alloc_cause.h"
#include "detectors/alloc_story.h"
#include "detectors/memory_use.h"
#include "detectors/went_on.h"
#include "detectors/whereabouts.h"
#include "detectors/words.h"

namespace dshang::detect {
namespace {

constexpr std::uint64_t kBehindNs = 60'000'000'000;  // what parts later has another cause
constexpr std::size_t kMostOthers = 4;               // ranks told of one by one
constexpr double kOnlyThere = 0.1;  // of the device, taken by nobody on one rank and not on the other

// They do something else, not only the same later: who tries a smaller batch comes later than the others.
bool does_differ(const JobView& view, const Divergence& d) {
  bool is_late = d.visible.kind == job::Visible::Kind::kMissing &&
                 (d.story.kind == job::Story::Kind::kNone || d.story.kind == job::Story::Kind::kSilent);
  return !is_late || view.ago(d.since_ns) >= view.stall_after();
}

// The ranks parted soon after the failure, and the rank is one of them.
bool parted_behind(const Work& work, const job::RankView& rank, std::uint64_t failed_ns) {
  auto process = static_cast<std::size_t>(&rank - work.view.ranks.data());
  return std::any_of(work.divergences.begin(), work.divergences.end(), [&](const Divergence& d) {
    return d.comm->member_of(process) && d.since_ns <= failed_ns + kBehindNs && does_differ(work.view, d);
  });
}

// It will not go on as if nothing had happened: it has ended or is about to, or did nothing since for so
// long.
bool is_final(const JobView& view, const job::RankView& rank, std::uint64_t failed_ns) {
  return !rank.alive() || view.ago(failed_ns) >= view.stall_after() || uncaught_since(view, rank, failed_ns);
}

std::string where(const JobView& view, const job::AllocFailure& failure) {
  std::string text;
  if (failure.phase) text += ", " + view.names().text(failure.phase);
  if (failure.module) text += ", module " + view.names().text(failure.module);
  if (failure.site) {
    if (std::string at = view.names().place_text(view.names().place_of(failure.site)); !at.empty())
      text += ", at " + at;
  }
  return text;
}

struct Failed {
  const job::RankView& rank;
  const job::AllocFailure& failure;
  std::uint64_t went_on_ns;  // 0 = not, or not without consequences
  AllocCause cause;
};

bool is_near(std::uint64_t a, std::uint64_t b, double bound) {
  return static_cast<double>(a > b ? a - b : b - a) < bound;
}

// For the same reason in the same step.
bool is_alike(const Failed& a, const Failed& b) {
  bool together = is_near(a.failure.time_ns, b.failure.time_ns, static_cast<double>(kBehindNs));
  double part = kOnlyThere * static_cast<double>(known(a.failure.total).value_or(0));
  bool like_cards = part == 0 || is_near(taken_by_nobody(a.failure), taken_by_nobody(b.failure), part);
  return a.failure.step == b.failure.step && a.cause == b.cause && together && like_cards &&
         (a.went_on_ns == 0) == (b.went_on_ns == 0);
}

bool is_same_request(const Failed& a, const Failed& b) {
  return std::tie(a.failure.size, a.failure.phase, a.failure.module) ==
         std::tie(b.failure.size, b.failure.phase, b.failure.module);
}

// What the others of them asked for, and where, unless it was the same.
std::string other_requests(const JobView& view, const std::vector<Failed>& alike, const Failed& first) {
  std::string text;
  std::size_t told = 0, left_out = 0;
  for (const Failed& one : alike) {
    if (is_same_request(one, first)) continue;
    if (told++ >= kMostOthers) {
      ++left_out;
      continue;
    }
    text += (text.empty() ? "" : "; ") + std::string("rank ") + std::to_string(one.rank.rank) + " " +
            bytes_text(one.failure.size) + where(view, one.failure);
  }
  if (text.empty()) return "";
  return "refused to the others: " + text + (left_out ? " and " + std::to_string(left_out) + " more" : "");
}

// What they hold, and where they are while these are out of memory.
void add_others(const JobView& view, bool is_over, Finding& f) {
  std::string held, places;
  std::size_t told = 0, left_out = 0;
  for (std::size_t r = 0; r < view.ranks.size(); ++r) {
    const job::RankView& other = view.ranks[r];
    if (std::count(f.suspects.begin(), f.suspects.end(), other.rank)) continue;
    if (told++ >= kMostOthers) {
      ++left_out;
      continue;
    }
    std::string name = "rank " + std::to_string(other.rank) + " ";
    held += (held.empty() ? "" : ", ") + name +
            bytes_text(other.records().live[static_cast<std::size_t>(flight::MemoryKind::kDevice)]);
    if (const job::Call* call = oldest_outstanding(other))
      places += (places.empty() ? "" : "; ") + name + waits_in_text(view, r, *call);
  }
  std::string more = left_out ? " and " + std::to_string(left_out) + " more" : "";
  if (!held.empty()) f.evidence.push_back("allocated by the others: " + held + more);
  if (!places.empty() && !is_over) f.evidence.push_back("meanwhile: " + places + more);
}

Finding make_finding(const JobView& view, const std::vector<Failed>& alike) {
  const Failed& first = *std::min_element(alike.begin(), alike.end(), [](const Failed& a, const Failed& b) {
    return a.failure.time_ns < b.failure.time_ns;
  });
  const job::AllocFailure& failure = first.failure;
  Finding f;
  f.type = "alloc-failed";
  f.severity = Severity::kError;
  f.certainty = f.class_certainty = Certainty::kProven;
  for (const Failed& one : alike) f.suspects.push_back(one.rank.rank);
  f.at = view.seconds(failure.time_ns);
  if (failure.step != job::kNoStep) f.step = failure.step;
  AllocStory story = story_of(view, first.rank, failure);
  std::string requests = other_requests(view, alike, first);
  f.summary =
      job::ranks_text(f.suspects) + " could not allocate " +
      (requests.empty() ? "" : "device memory, rank " + std::to_string(first.rank.rank) + " first: ") +
      bytes_text(failure.size) + (requests.empty() ? " of device memory (" : " (") +
      bytes_text(failure.free) + " free of " + bytes_text(failure.total) + ")" +
      (f.step ? " in step " + std::to_string(*f.step) : "") + where(view, failure) + story.summary;
  f.evidence = std::move(story.evidence);
  if (!requests.empty()) f.evidence.insert(f.evidence.begin(), std::move(requests));
  add_others(view, first.went_on_ns != 0, f);
  f.fix = std::move(story.fix);
  if (first.went_on_ns == 0) return f;
  std::uint64_t over_ns = 0;
  for (const Failed& one : alike) over_ns = std::max(over_ns, one.went_on_ns);
  f.resolved = view.seconds(over_ns);
  return f;
}

void run(Work& work) {
  std::vector<std::vector<Failed>> groups;
  for (const job::RankView& rank : work.view.ranks) {
    const job::AllocFailure* failure = last_alloc_failure(work.view, rank);
    if (!failure) continue;
    std::uint64_t went_on_ns = went_on_at(rank, failure->time_ns);
    if (parted_behind(work, rank, failure->time_ns))
      went_on_ns = 0;
    else if (went_on_ns == 0 && !is_final(work.view, rank, failure->time_ns))
      continue;  // the program may catch it and go on with less
    Failed failed{rank, *failure, went_on_ns, cause_of(work.view, rank, *failure)};
    auto alike = std::find_if(groups.begin(), groups.end(), [&](const std::vector<Failed>& group) {
      return is_alike(group.front(), failed);
    });
    if (alike == groups.end()) alike = groups.insert(groups.end(), std::vector<Failed>());
    alike->push_back(failed);
  }
  for (const std::vector<Failed>& alike : groups) work.findings.push_back(make_finding(work.view, alike));
}

}  // namespace

DSHANG_DETECTOR(10, "alloc-failed", run);

}  // namespace dshang::detect
