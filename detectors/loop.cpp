#include "detectors/loop.h"

#include <algorithm>
#include <map>
#include <set>

namespace dshang::detect {
namespace {

constexpr std::size_t kFewest = 2, kMost = 8;  // finished steps looked at

// A function, and how it was called: its own file and name, and all frames behind it.
struct Activity {
  job::NameId file = 0, function = 0;
  std::vector<job::FrameName> callers;
  bool operator<(const Activity& other) const {
    auto key = [](const job::FrameName& f) { return std::tuple(f.file, f.function, f.line); };
    auto less = [&](const job::FrameName& a, const job::FrameName& b) { return key(a) < key(b); };
    if (std::tie(file, function) != std::tie(other.file, other.function))
      return std::tie(file, function) < std::tie(other.file, other.function);
    return std::lexicographical_compare(callers.begin(), callers.end(), other.callers.begin(),
                                        other.callers.end(), less);
  }
};

struct Lines {
  std::int32_t first = INT32_MAX, last = INT32_MIN;
};
using Activities = std::map<Activity, Lines>;

Activity activity_of(const job::Site& site, std::size_t frame) {
  auto behind = site.frames.begin() + static_cast<std::ptrdiff_t>(frame);
  return {behind->file, behind->function, {behind + 1, site.frames.end()}};
}

}  // namespace

bool is_in_loop(const JobView& view, const job::RankView& rank, const job::Call& call) {
  if (!call.site || call.step == job::kNoStep) return false;
  std::map<std::int64_t, std::set<job::SiteId>> sites;  // by step
  auto add = [&](std::int64_t step, job::SiteId site) {
    if (site && step != job::kNoStep && step < call.step) sites[step].insert(site);
  };
  const auto& calls = rank.records().calls;
  for (std::uint64_t n = calls.first(); n < calls.end(); ++n) {
    if (!calls.at(n).torn) add(calls.at(n).step, calls.at(n).site);
  }
  const auto& visits = rank.records().visits;
  for (std::uint64_t n = visits.first(); n < visits.end(); ++n) {
    if (!visits.at(n).torn) add(visits.at(n).step, visits.at(n).site);
  }
  if (sites.size() < kFewest) return false;
  std::vector<Activities> steps;
  for (auto step = sites.rbegin(); step != sites.rend() && steps.size() < kMost; ++step) {
    Activities& activities = steps.emplace_back();
    for (job::SiteId id : step->second) {
      const job::Site& site = view.names().site(id);
      for (std::size_t f = 0; f < site.frames.size(); ++f) {
        Lines& lines = activities[activity_of(site, f)];
        lines.first = std::min(lines.first, site.frames[f].line);
        lines.last = std::max(lines.last, site.frames[f].line);
      }
    }
  }
  const job::Site& site = view.names().site(call.site);
  for (std::size_t f = 0; f < site.frames.size(); ++f) {
    const Activity activity = activity_of(site, f);
    const std::int32_t line = site.frames[f].line;
    bool in_each = std::all_of(steps.begin(), steps.end(), [&](const Activities& activities) {
      auto at = activities.find(activity);
      return at != activities.end() && at->second.first < at->second.last && at->second.first <= line &&
             line <= at->second.last;
    });
    if (in_each) return true;
  }
  return false;
}

}  // namespace dshang::detect
