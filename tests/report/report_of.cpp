// report_of html|json|perfetto SNAPSHOT.txt: what dshang would write of a job with these records, on standard
// output.
//
// SNAPSHOT.txt is as `dshang report --dump` prints it; SNAPSHOT.journal beside it, if there, what the monitor
// saw.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "core/job/parse.h"
#include "core/job/report_html.h"
#include "core/job/report_perfetto.h"
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
  std::uint64_t newest = std::max(r.start_ns, r.ending_ns);
  for (std::uint64_t n = r.calls.first(); n < r.calls.end(); ++n) {
    newest = std::max({newest, r.calls.at(n).enter_ns, r.calls.at(n).return_ns, r.calls.at(n).done_ns});
  }
  for (std::uint64_t n = r.visits.first(); n < r.visits.end(); ++n)
    newest = std::max(newest, r.visits.at(n).time_ns);
  return newest;
}

// Empty, or what is wrong with the snapshot.
std::string fill(job::Job& job, const fs::path& snapshot) {
  job.journal.dir = "DIR";
  fs::path journal = snapshot;
  journal.replace_extension(".journal");
  if (fs::exists(journal)) {
    std::ifstream in(journal);
    job.journal = job::read_journal(in);
  }
  job.params = job::params_from(job.journal.parameters);
  job::Parsed parsed = job::parse(read(snapshot), job.names);
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
  return parsed.error;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  job::Job job;
  std::string error = fill(job, argv[2]);
  if (!error.empty()) {
    std::fprintf(stderr, "%s: %s\n", argv[2], error.c_str());
    return 2;
  }
  job::FindingHistory history;
  bool has_news = false;
  job::Report report = history.update(job, detect::analyse(job), &has_news);
  std::string form = argv[1];
  if (form == "perfetto") {
    job::write_perfetto(job, report, std::cout);
  } else {
    std::cout << (form == "html" ? job::html_of(job, report) : job::json_of(report));
  }
  return std::cout.flush() ? 0 : 1;
}
