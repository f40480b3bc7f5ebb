#include "monitor/top/live_job.h"

#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "monitor/clock.h"
#include "monitor/disk.h"
#include "monitor/replay.h"
#include "monitor/server.h"
#include "monitor/settings.h"
#include "monitor/top/one_moment.h"

namespace dshang::monitor {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestNote = 1 << 16;

struct Running {
  std::string name;       // of the job
  std::string directory;  // DSHANG_DIR, or this node's part of it
};

// Jobs of this user whose node-local copies lie on this machine.
std::vector<Running> running_jobs() {
  std::vector<Running> found;
  std::error_code error;
  for (const auto& job : fs::directory_iterator(spool_of_user(getuid()), error)) {
    const int attempt = newest_attempt(job.path().string());
    if (attempt == 0) continue;
    try {
      std::string text = read_file(
          (job.path() / ("attempt-" + std::to_string(attempt)) / "directory").string(), kLongestNote);
      fs::path directory = text.substr(0, text.find('\n'));
      if (fs::is_directory(directory, error))
        found.push_back({job.path().filename().string(), directory.parent_path().string()});
    } catch (const std::exception&) {  // it began or ended just now
    }
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return found;
}

// Of a job that was killed with its monitor the copies stay for days.  Where no monitor is reached at all
// (the jobs are in other network namespaces) all are meant.
std::vector<Running> watched(std::vector<Running> jobs) {
  std::vector<Running> alive;
  for (const Running& job : jobs) {
    std::uint64_t number = 0;
    std::from_chars(job.name.data(), job.name.data() + job.name.size(), number, 16);
    if (somebody_listens(getuid(), number)) alive.push_back(job);
  }
  return alive.empty() ? jobs : alive;
}

std::string list_of_jobs(const std::vector<Running>& jobs) {
  if (jobs.empty()) return "no job of this user runs on this machine";
  std::string text = "jobs on this machine:";
  for (const Running& job : jobs) text += "\n  " + job.name + "  " + job.directory;
  return text;
}

std::string directory_of(const std::string& name) {
  std::error_code error;
  if (!name.empty() && fs::is_directory(name, error)) return name;
  const std::vector<Running> all = running_jobs(), jobs = name.empty() ? watched(all) : all;
  std::vector<Running> meant;
  std::copy_if(jobs.begin(), jobs.end(), std::back_inserter(meant),
               [&](const Running& job) { return job.name.starts_with(name); });
  if (meant.size() == 1) return meant[0].directory;
  if (name.empty() && meant.size() > 1) throw std::runtime_error("which job? " + list_of_jobs(jobs));
  throw std::runtime_error((name.empty() ? "" : name + " is no directory and names no single job; ") +
                           list_of_jobs(jobs));
}

// The head of the report that the monitor wrote last.
void add_report(const std::string& directory, JobLook* look) {
  for (const char* name : {"report.json", "node.json"}) {
    try {
      const auto report = nlohmann::json::parse(read_file(directory + "/" + name));
      look->verdict = report.at("verdict").get<std::string>();
      for (const auto& finding : report.at("findings")) {
        if (!finding.at("resolved").is_null()) continue;
        look->finding =
            "[" + finding.at("class").get<std::string>() + "] " + finding.at("summary").get<std::string>();
        break;
      }
      return;
    } catch (const std::exception&) {  // there is none
    }
  }
}

// Its times count from the start of the same machine.
bool is_of_this_machine(const job::Job& job) {
  char name[HOST_NAME_MAX + 1] = {};
  return gethostname(name, sizeof name - 1) == 0 && job.processes[0]->records.host == name;
}

}  // namespace

LiveJob::LiveJob(const std::string& name) : directory_(directory_of(name)) {}

JobLook LiveJob::look() const {
  const Replay replayed = replay({directory_});
  const std::uint64_t moment = take_one_moment(*replayed.job);
  JobLook look;
  look.table = rank_table_of(job::make_view(*replayed.job));
  const std::uint64_t now = now_ns();
  if (moment != 0 && moment <= now && is_of_this_machine(*replayed.job))
    look.table.age = static_cast<double>(elapsed(moment, now)) / static_cast<double>(kSecond);
  if (look.table.dir.empty()) look.table.dir = directory_;
  add_report(directory_, &look);
  return look;
}

}  // namespace dshang::monitor
