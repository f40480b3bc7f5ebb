// Jobs from readable snapshots: <case>.txt as `dshang report --dump` prints it, <case>.journal beside it, where there is
// one, what the monitor saw.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "core/job/job.h"
#include "core/job/parse.h"

namespace dshang::snapshot {

inline std::string read(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

inline std::uint64_t newest_time(const job::RankRecords& r) {
  std::uint64_t newest = std::max(r.start_ns, r.ending_ns);
  for (std::uint64_t n = r.calls.first(); n < r.calls.end(); ++n) {
    newest = std::max({newest, r.calls.at(n).enter_ns, r.calls.at(n).return_ns, r.calls.at(n).done_ns});
  }
  for (std::uint64_t n = r.visits.first(); n < r.visits.end(); ++n)
    newest = std::max(newest, r.visits.at(n).time_ns);
  return newest;
}

// The snapshot's last time and a second is "now" unless the journal says otherwise.  Returns what is wrong with the
// records, "" else.
inline std::string fill(job::Job& job, const std::string& records, const std::string& journal) {
  job.journal.dir = "DIR";
  if (!journal.empty()) {
    std::istringstream in(journal);
    job.journal = job::read_journal(in);
  }
  job.params = job::params_from(job.journal.parameters);
  job::Parsed parsed = job::parse(records, job.names);
  std::uint64_t newest = 0;
  for (job::RankRecords& of_rank : parsed.ranks) {
    auto process = std::make_unique<job::Process>();
    for (const job::ProcessJournal& seen : job.journal.processes) {
      if (seen.pid == of_rank.pid) process->journal = seen;
    }
    newest = std::max(newest, newest_time(of_rank));
    if (job.journal.start_ns == 0) job.journal.start_ns = of_rank.start_ns;
    process->records = std::move(of_rank);
    job.processes.push_back(std::move(process));
  }
  if (job.journal.now_ns == 0) job.journal.now_ns = newest + 1'000'000'000;
  return parsed.error;
}

inline std::string fill(job::Job& job, const std::filesystem::path& snapshot) {
  std::filesystem::path journal = snapshot;
  journal.replace_extension(".journal");
  return fill(job, read(snapshot), std::filesystem::exists(journal) ? read(journal) : "");
}

}  // namespace dshang::snapshot
