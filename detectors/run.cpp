#include "detectors/run.h"

#include <algorithm>
#include <exception>
#include <string>

#include "detectors/registry.h"

namespace dshang::detect {
namespace {

// Whose creation goes on, or failed on a rank: then it is known why others are not in it.
bool is_unfinished(const JobView& view, const job::CommView& comm) {
  return std::any_of(view.ranks.begin(), view.ranks.end(), [&](const job::RankView& rank) {
    const auto& comms = rank.records().comms;
    return std::any_of(comms.begin(), comms.end(), [&](const job::Comm& one) {
      return one.id == comm.id &&
             (one.state == flight::CommState::kCreating || one.state == flight::CommState::kFailed);
    });
  });
}

std::vector<std::string> not_checked(const JobView& view) {
  std::vector<std::string> lines;
  for (const job::CommView& comm : view.comms) {
    if (comm.complete() || comm.size <= 0 || is_unfinished(view, comm)) continue;
    lines.push_back("communicator " + comm.name + ": heard from " + std::to_string(comm.members.size()) +
                    " of its " + std::to_string(comm.size) +
                    " ranks; nothing rests on the absence of the others");
  }
  auto heard = static_cast<std::int32_t>(view.ranks.size());
  if (view.world_size > heard && heard > 0) {
    lines.push_back(std::to_string(view.world_size - heard) + " of " + std::to_string(view.world_size) +
                    " ranks were not heard from (another node, another network namespace, or not preloaded)");
  }
  for (const job::RankView& rank : view.ranks) {
    const job::RankRecords& records = rank.records();
    std::string name = "rank " + std::to_string(rank.rank) + ": ";
    if (records.dropped_sites)
      lines.push_back(name + std::to_string(records.dropped_sites) + " call sites were dropped (table full)");
    if (records.dropped_strings)
      lines.push_back(name + std::to_string(records.dropped_strings) + " names were dropped (table full)");
    if (records.dropped_comms)
      lines.push_back(name + std::to_string(records.dropped_comms) +
                      " communicators were dropped (table full)");
    if (records.dropped_threads)
      lines.push_back(name + std::to_string(records.dropped_threads) + " threads were dropped (table full)");
    if (records.python == 2) lines.push_back(name + "Python call sites are off");
  }
  return lines;
}

// An allocation that failed on a suspect just before it parted from the others is the cause (DESIGN.md
// section 8, point 6).
void link_causes(std::vector<Finding>& findings) {
  constexpr double kJustBefore = 60;  // seconds
  for (std::size_t cause = 0; cause < findings.size(); ++cause) {
    if (findings[cause].type != "alloc-failed") continue;
    for (std::size_t i = 0; i < findings.size(); ++i) {
      Finding& f = findings[i];
      const std::vector<Rank>& short_of_it = findings[cause].suspects;
      bool same_rank = std::any_of(f.suspects.begin(), f.suspects.end(), [&](Rank rank) {
        return std::count(short_of_it.begin(), short_of_it.end(), rank) > 0;
      });
      double after = f.at - findings[cause].at;
      if (i != cause && same_rank && !f.consequence_of && f.severity == Severity::kHang && after >= -1 &&
          after <= kJustBefore) {
        f.consequence_of = cause;
      }
    }
  }
}

// A rank that ended is why it is missing in the creation of a communicator, or as the partner of a send or
// receive.
void link_endings(std::vector<Finding>& findings) {
  for (std::size_t i = 0; i < findings.size(); ++i) {
    bool missed = findings[i].type == "comm-init-stall" &&
                  findings[i].certainty == Certainty::kJudged;  // else it had failed
    bool may_follow = missed || findings[i].type == "p2p-unmatched";
    for (std::size_t cause = 0; cause < findings.size() && may_follow; ++cause) {
      bool ended = findings[cause].type == "rank-dead" || findings[cause].type == "early-return";
      const auto& suspects = findings[cause].suspects;
      bool same = std::any_of(suspects.begin(), suspects.end(), [&](Rank rank) {
        return std::count(findings[i].suspects.begin(), findings[i].suspects.end(), rank) > 0;
      });
      if (ended && same) findings[i].consequence_of = cause;
    }
  }
}

}  // namespace

std::vector<Explainer>& Registry::explainers() {
  static std::vector<Explainer> all;
  return all;
}

std::vector<Detector>& Registry::detectors() {
  static std::vector<Detector> all;
  return all;
}

job::Analysis analyse(const job::Job& job) {
  auto by_order = [](const auto& a, const auto& b) { return a.order < b.order; };
  std::sort(Registry::explainers().begin(), Registry::explainers().end(), by_order);
  std::sort(Registry::detectors().begin(), Registry::detectors().end(), by_order);
  JobView view = job::make_view(job);
  Work work{view, {}, {}, {}, {}};
  for (const job::CommView& comm : view.comms) {
    if (std::optional<Divergence> d = job::find_divergence(view, comm))
      work.divergences.push_back(std::move(*d));
  }
  std::stable_sort(work.divergences.begin(), work.divergences.end(),
                   [](const Divergence& a, const Divergence& b) { return a.since_ns < b.since_ns; });
  work.explained.assign(work.divergences.size(), false);
  std::vector<std::string> failed;
  for (const Detector& detector : Registry::detectors()) {
    try {
      detector.run(work);
    } catch (const std::exception& error) {  // the others have their say
      failed.push_back(std::string(detector.type) + ": the detector failed: " + error.what());
    }
  }
  link_causes(work.findings);
  link_endings(work.findings);
  job::put_in_order(work.findings);
  std::vector<std::string> lines = not_checked(view);
  lines.insert(lines.end(), failed.begin(), failed.end());
  return {std::move(work.findings), std::move(lines), std::move(work.wants_stacks)};
}

}  // namespace dshang::detect
