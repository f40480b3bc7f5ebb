// Golden tests: readable snapshots in, report out.
//
// tests/golden/<class>/<case>.txt     the records of all ranks, as `dshang report --dump` prints them
// tests/golden/<class>/<case>.journal (may be missing) what the monitor saw: one JSON object a line (core/job/journal.h)
// tests/golden/<class>/<case>.report  the text report that must come out
//
// A snapshot's last time is "now" unless the journal says otherwise.  DSHANG_UPDATE_GOLDEN=1 writes the reports anew;
// read the difference before you commit it.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "catch.h"
#include "core/job/parse.h"
#include "detectors/registry.h"
#include "detectors/run.h"

namespace {

namespace fs = std::filesystem;
using namespace dshang;

std::string read(const fs::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::uint64_t newest_time(const job::RankRecords& r) {
  std::uint64_t newest = r.start_ns;
  for (std::uint64_t n = r.calls.first(); n < r.calls.end(); ++n) {
    newest = std::max({newest, r.calls.at(n).enter_ns, r.calls.at(n).return_ns, r.calls.at(n).done_ns});
  }
  for (std::uint64_t n = r.visits.first(); n < r.visits.end(); ++n) newest = std::max(newest, r.visits.at(n).time_ns);
  return std::max(newest, r.ending_ns);
}

void fill(job::Job& job, const fs::path& snapshot) {
  job.journal.dir = "DIR";
  fs::path journal = snapshot;
  journal.replace_extension(".journal");
  if (fs::exists(journal)) {
    std::ifstream in(journal);
    job.journal = job::read_journal(in);
  }
  job.params = job::params_from(job.journal.parameters);
  job::Parsed parsed = job::parse(read(snapshot), job.names);
  REQUIRE(parsed.error == "");
  std::uint64_t newest = 0;
  for (job::RankRecords& records : parsed.ranks) {
    auto process = std::make_unique<job::Process>();
    for (const job::ProcessJournal& seen : job.journal.processes) {
      if (seen.pid == records.pid) process->journal = seen;
    }
    newest = std::max(newest, newest_time(records));
    if (job.journal.start_ns == 0) job.journal.start_ns = records.start_ns;
    process->records = std::move(records);
    job.processes.push_back(std::move(process));
  }
  if (job.journal.now_ns == 0) job.journal.now_ns = newest + 1'000'000'000;
}

std::string report_of(const fs::path& snapshot) {
  job::Job job;
  fill(job, snapshot);
  job::FindingHistory history;
  bool has_news = false;
  return job::text_of(history.update(job, detect::analyse(job), &has_news));
}

std::vector<fs::path> snapshots() {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(DSHANG_GOLDEN_DIR)) {
    if (entry.path().extension() == ".txt" && entry.path().parent_path() != DSHANG_GOLDEN_DIR) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

TEST_CASE("every snapshot gives its report", "[golden]") {
  bool update = std::getenv("DSHANG_UPDATE_GOLDEN") != nullptr;
  for (const fs::path& snapshot : snapshots()) {
    INFO(snapshot.string());
    fs::path expected = snapshot;
    expected.replace_extension(".report");
    std::string report = report_of(snapshot);
    CHECK(report == report_of(snapshot));  // same input, same report
    if (update) std::ofstream(expected) << report;
    CHECK(report == read(expected));
  }
}

TEST_CASE("every class has a golden folder that finds it, and `healthy` finds nothing", "[golden]") {
  std::set<std::string> types;
  for (const auto& explainer : detect::Registry::explainers()) types.insert(explainer.type);
  for (const auto& detector : detect::Registry::detectors()) {
    if (std::string(detector.type) != "parted") types.insert(detector.type);  // it asks the explainers
  }
  REQUIRE(types.size() >= 12);
  for (const std::string& type : types) {
    INFO("no snapshot in tests/golden/" << type << " whose report finds it");
    bool found = false;
    for (const fs::path& snapshot : snapshots()) {
      if (snapshot.parent_path().filename() == type) found = found || report_of(snapshot).find("[" + type + "]") != std::string::npos;
    }
    CHECK(found);
  }
  bool any_healthy = false;
  for (const fs::path& snapshot : snapshots()) {
    if (snapshot.parent_path().filename() != "healthy") continue;
    any_healthy = true;
    INFO(snapshot.string());
    CHECK(report_of(snapshot).find("nothing was found") != std::string::npos);
  }
  CHECK(any_healthy);
}
