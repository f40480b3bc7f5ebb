#include "monitor/cli/issue_job.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "core/job/model.h"
#include "core/job/report.h"
#include "monitor/replay.h"

namespace dshang::monitor::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostExceptions = 20;

struct Raised {
  std::uint64_t time_ns = 0;
  std::string text;
  std::vector<job::Rank> ranks;
};

std::string text_of(const job::Exception& raised, const job::Names& names) {
  std::string text = names.text(raised.type) + ": " + names.text(raised.message);
  std::string where;
  auto add = [&](const std::string& what) { where += (where.empty() ? "" : ", ") + what; };
  if (raised.step != job::kNoStep) add("step " + std::to_string(raised.step));
  if (raised.phase) add(names.text(raised.phase));
  if (raised.module) add("module " + names.text(raised.module));
  for (const job::FrameName& frame : names.site(raised.site).frames)
    text += "\n    at " + names.text(frame.file) + ":" + std::to_string(frame.line) + " " +
            names.text(frame.function);
  return (where.empty() ? "" : where + ": ") + text;
}

// Equal ones of several ranks as one, in order of time.
std::vector<std::string> exceptions_of(const job::Job& job) {
  std::vector<Raised> all;
  for (const auto& process : job.processes) {
    const auto& exceptions = process->records.exceptions;
    for (std::uint64_t n = exceptions.first(); n < exceptions.end(); ++n) {
      Raised raised{exceptions.at(n).time_ns, text_of(exceptions.at(n), job.names), {process->records.rank}};
      auto same =
          std::find_if(all.begin(), all.end(), [&](const Raised& one) { return one.text == raised.text; });
      if (same == all.end()) {
        all.push_back(std::move(raised));
      } else {
        same->time_ns = std::min(same->time_ns, raised.time_ns);
        if (std::count(same->ranks.begin(), same->ranks.end(), raised.ranks[0]) == 0)
          same->ranks.push_back(raised.ranks[0]);
      }
    }
  }
  std::sort(all.begin(), all.end(), [](const Raised& a, const Raised& b) { return a.time_ns < b.time_ns; });
  std::vector<std::string> result;
  for (Raised& one : all) {
    std::sort(one.ranks.begin(), one.ranks.end());
    if (result.size() < kMostExceptions) result.push_back(job::ranks_text(one.ranks) + ", " + one.text);
  }
  return result;
}

// Processes by rank, so that the first to tell a fact is the lowest.
void add_facts(const job::Job& job, issue::RecordedJob* told) {
  std::vector<const job::Process*> processes;
  for (const auto& process : job.processes) processes.push_back(process.get());
  std::stable_sort(processes.begin(), processes.end(), [](const job::Process* a, const job::Process* b) {
    return a->records.rank < b->records.rank;
  });
  for (const job::Process* process : processes) {
    std::map<std::string, std::string> newest;
    const auto& facts = process->records.facts;
    for (std::uint64_t n = facts.first(); n < facts.end(); ++n)
      newest[job.names.text(facts.at(n).key)] = job.names.text(facts.at(n).value);
    told->facts.insert(newest.begin(), newest.end());
  }
}

}  // namespace

issue::RecordedJob recorded_job(const std::string& directory) {
  Replay replayed = replay({directory});
  job::FindingHistory history;
  job::Report report = repeat(replayed, &history);
  issue::RecordedJob told;
  told.directory = directory;
  told.report_text = job::text_of(report);
  told.report_json = job::json_of(report);
  told.world_size = report.world_size;
  told.nodes = report.nodes;
  std::set<std::string> hosts;
  for (const auto& process : replayed.job->processes) hosts.insert(process->records.host);
  hosts.erase("");
  told.hosts.assign(hosts.begin(), hosts.end());
  told.exceptions = exceptions_of(*replayed.job);
  add_facts(*replayed.job, &told);
  return told;
}

std::string newest_job() {
  std::error_code error;
  const char* chosen = std::getenv("DSHANG_DIR");
  if (chosen && fs::is_directory(fs::path(chosen) / "flight", error)) return chosen;
  std::string newest;
  fs::file_time_type of_newest{};
  for (const auto& entry : fs::directory_iterator(".", error)) {
    std::string name = entry.path().filename().string();
    std::error_code none;
    if (!name.starts_with("dshang-") || !fs::is_directory(entry.path() / "flight", none)) continue;
    fs::file_time_type written = fs::last_write_time(entry.path() / "flight", none);
    if (newest.empty() || written > of_newest) newest = entry.path().string(), of_newest = written;
  }
  return newest;
}

}  // namespace dshang::monitor::cli
