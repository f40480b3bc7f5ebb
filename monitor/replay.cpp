#include "monitor/replay.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include "core/flight/reader.h"
#include "core/job/load.h"
#include "detectors/run.h"
#include "monitor/as_of.h"
#include "monitor/disk.h"
#include "monitor/ending.h"
#include "monitor/recorder_files.h"

namespace dshang::monitor {
namespace {

namespace fs = std::filesystem;

constexpr const char* kEnding = ".flight";
constexpr const char* kJournal = "monitor.log";
constexpr std::size_t kLongestNote = 1 << 16;

// "; did you mean …?" with the folders below that are directories of jobs; "" where there are none.
std::string jobs_below(const fs::path& named) {
  constexpr std::size_t kShown = 5;
  std::vector<std::string> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(named, error)) {
    std::error_code none;
    if (fs::is_directory(entry.path() / "flight", none)) found.push_back(entry.path().string());
  }
  if (found.empty()) return "";
  std::sort(found.begin(), found.end());
  std::string text;
  for (std::size_t i = 0; i < std::min(found.size(), kShown); ++i) text += (i == 0 ? "" : ", ") + found[i];
  if (found.size() > kShown) text += ", … (" + std::to_string(found.size()) + " jobs)";
  return "; did you mean " + std::string(found.size() > 1 ? "one of " : "") + text + "?";
}

// The folder with flight files of what the user named.
fs::path flight_folder(const fs::path& named) {
  std::error_code error;
  if (!fs::is_directory(named, error)) throw std::runtime_error(named.string() + " is no directory");
  if (fs::is_directory(named / "flight", error)) return named / "flight";
  for (const auto& entry : fs::directory_iterator(named, error)) {
    if (entry.path().extension() == kEnding || entry.path().filename() == kJournal) return named;
  }
  throw std::runtime_error(named.string() + " holds no flight files" + jobs_below(named));
}

std::vector<fs::path> nodes_below(const fs::path& named) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(named, error)) {
    bool node = entry.path().filename().string().starts_with("node-");
    if (node && fs::is_directory(entry.path() / "flight", error)) found.push_back(entry.path() / "flight");
  }
  std::sort(found.begin(), found.end());
  return found;
}

// The node-local copies that a folder names and that exist on this machine.
std::vector<fs::path> spools_of(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (!entry.path().filename().string().starts_with("spool.")) continue;
    std::string text;
    try {
      text = read_file(entry.path().string(), kLongestNote);
    } catch (const std::exception&) {  // it names nothing then
      continue;
    }
    fs::path spool = text.substr(0, text.find('\n'));
    if (fs::is_directory(spool, error)) found.push_back(spool);
  }
  return found;
}

// Flight files by name; of two of the same name the one written last.
std::map<std::string, fs::path> flight_files(const fs::path& folder) {
  std::map<std::string, fs::path> files;
  std::vector<fs::path> folders = spools_of(folder);
  folders.insert(folders.begin(), folder);
  std::error_code error;
  for (const fs::path& one : folders) {
    for (const auto& entry : fs::directory_iterator(one, error)) {
      if (entry.path().extension() != kEnding) continue;
      auto [at, is_new] = files.try_emplace(entry.path().filename().string(), entry.path());
      if (!is_new && fs::last_write_time(entry.path(), error) > fs::last_write_time(at->second, error)) {
        at->second = entry.path();
      }
    }
  }
  return files;
}

// The journal with the most in it: the node-local one may be ahead.
fs::path journal_file(const fs::path& folder) {
  fs::path best = folder / kJournal;
  std::error_code error;
  for (const fs::path& spool : spools_of(folder)) {
    bool longer =
        !fs::exists(best, error) || fs::file_size(spool / kJournal, error) > fs::file_size(best, error);
    if (fs::exists(spool / kJournal, error) && longer) best = spool / kJournal;
  }
  return best;
}

// Aligned as Reader wants it.
struct Bytes {
  explicit Bytes(const std::string& text) : words((text.size() + 7) / 8), size(text.size()) {
    std::copy(text.begin(), text.end(), reinterpret_cast<char*>(words.data()));
  }
  std::vector<std::uint64_t> words;
  std::size_t size;
};

bool same_process(const job::RankRecords& records, const job::ProcessJournal& journal) {
  return records.pid == journal.pid && records.pid_start_ticks == journal.pid_start_ticks;
}

template <typename T>
bool have_common(const std::set<T>& a, const std::set<T>& b) {
  return std::any_of(a.begin(), a.end(), [&](const T& one) { return b.count(one) > 0; });
}

class Collector {
 public:
  std::size_t processes() const { return result_.job->processes.size(); }

  // Directories of several nodes hold different ranks, which share communicators.
  void expect_one_job(const std::string& named, const std::string& first, std::size_t before) const {
    std::size_t all = processes();
    if (have_common(ranks_of(0, before), ranks_of(before, all)) &&
        !have_common(communicators_of(0, before), communicators_of(before, all)))
      throw std::runtime_error(named + " is of another job than " + first +
                               ": both hold the same ranks, and no communicator of theirs is the same");
  }

  void add_folder(const fs::path& folder) {
    job::Journal journal = read_journal_of(folder);
    std::vector<std::unique_ptr<job::Process>> loaded;
    for (const auto& [name, path] : flight_files(folder)) {
      try {
        if (auto process = load(path)) loaded.push_back(std::move(process));
      } catch (const std::exception& error) {
        result_.remarks.push_back(path.string() + ": not heard from, it cannot be read: " + error.what());
      }
    }
    const std::size_t before = result_.job->processes.size();
    // Processes come in the order of attaching, as they did when the job ran.
    for (job::ProcessJournal& seen : journal.processes) {
      auto at = std::find_if(loaded.begin(), loaded.end(),
                             [&](const auto& one) { return one && same_process(one->records, seen); });
      if (at == loaded.end()) {
        result_.remarks.push_back("process " + std::to_string(seen.pid) + " on " + journal.host +
                                  ": no flight file");
        continue;
      }
      (*at)->journal = std::move(seen);
      result_.job->processes.push_back(std::move(*at));
    }
    for (auto& process : loaded) {
      if (!process) continue;
      process->journal.pid = process->records.pid;
      process->journal.pid_start_ticks = process->records.pid_start_ticks;
      result_.job->processes.push_back(std::move(process));
    }
    if (!journal.has_end) go_on_without(folder, result_.job->processes.size() - before, journal);
    journal.processes.clear();
    merge(std::move(journal));
  }

  Replay take() {
    if (result_.job->processes.empty())
      throw std::runtime_error("no flight file could be read" + all_remarks());
    auto& moments = result_.moments;
    if (moments.empty() || unseen_ns_ > *std::max_element(moments.begin(), moments.end())) {
      moments.push_back(unseen_ns_);
      result_.unseen_ns = result_.job->journal.now_ns = unseen_ns_;
    }
    std::sort(moments.begin(), moments.end());
    moments.erase(std::unique(moments.begin(), moments.end()), moments.end());
    return std::move(result_);
  }

 private:
  job::Journal read_journal_of(const fs::path& folder) {
    fs::path path = journal_file(folder);
    try {
      std::string whole = read_file(path.string());
      whole.resize(whole.rfind('\n') + 1);  // the last one may have been cut off
      add_moments(whole);
      std::istringstream lines(whole);
      return job::read_journal(lines);
    } catch (const std::exception& error) {
      result_.remarks.push_back(path.string() + ": " + error.what() +
                                "; endings and host activity are not known");
      return {};
    }
  }

  void add_moments(const std::string& journal) {
    std::istringstream lines(journal);
    std::string time = job::line_of_time(0);
    time.resize(time.find('0'));
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with(time))
        result_.moments.push_back(std::strtoull(line.c_str() + time.size(), nullptr, 10));
    }
  }

  // The job still runs, or its monitor was ended with it, or could not write.
  void go_on_without(const fs::path& folder, std::size_t count, const job::Journal& journal) {
    auto& processes = result_.job->processes;
    std::uint64_t newest = journal.now_ns;
    for (auto at = processes.end() - static_cast<std::ptrdiff_t>(count); at != processes.end(); ++at) {
      job::RankRecords& records = (*at)->records;
      job::ProcessJournal& seen = (*at)->journal;
      if (!seen.death && records.ending != flight::EndingKind::kNone) {
        seen.death = death_of(records.ending, records.ending_code, std::nullopt, std::nullopt);
        seen.death->time_ns = records.ending_ns;
      }
      newest = std::max({newest, newest_time(records), newest_time(seen)});
    }
    unseen_ns_ = std::max(unseen_ns_, newest);
    result_.remarks.push_back(
        (folder / kJournal).string() +
        ": the monitor's log has no end (the job still runs, or its monitor was ended, or a "
        "disk was full): nothing was heard from the job after its newest record");
  }

  std::set<job::Rank> ranks_of(std::size_t from, std::size_t to) const {
    std::set<job::Rank> ranks;
    for (std::size_t i = from; i < to; ++i) ranks.insert(result_.job->processes[i]->records.rank);
    return ranks;
  }

  std::set<std::uint64_t> communicators_of(std::size_t from, std::size_t to) const {
    std::set<std::uint64_t> ids;
    for (std::size_t i = from; i < to; ++i) {
      for (const job::Comm& comm : result_.job->processes[i]->records.comms) ids.insert(comm.id);
    }
    return ids;
  }

  std::unique_ptr<job::Process> load(const fs::path& path) {
    auto process = std::make_unique<job::Process>();
    Bytes bytes(read_file(path.string()));
    flight::Reader reader(bytes.words.data(), bytes.size);
    if (!reader) {
      result_.remarks.push_back(path.string() + ": " + reader.problem());
      return nullptr;
    }
    job::LoadState state;
    job::update(process->records, reader, result_.job->names, state);
    return process;
  }

  void merge(job::Journal journal) {
    job::Journal& whole = result_.job->journal;
    if (!has_journal_) {
      has_journal_ = true;
      result_.job->params = job::params_from(journal.parameters);
      whole = std::move(journal);
    } else {
      whole.now_ns = std::max(whole.now_ns, journal.now_ns);
      if (journal.start_ns != 0) whole.start_ns = std::min(whole.start_ns, journal.start_ns);
    }
    for (const auto& process : result_.job->processes) {
      if (whole.start_ns == 0) {
        whole.start_ns = process->records.start_ns;
        whole.start_real_ns = process->records.start_real_ns;
      }
    }
  }

  std::string all_remarks() const {
    std::string text;
    for (const std::string& remark : result_.remarks) text += (text.empty() ? ": " : "; ") + remark;
    return text;
  }

  Replay result_{std::make_unique<job::Job>(), {}, 0, {}};
  bool has_journal_ = false;
  std::uint64_t unseen_ns_ = 0;
};

// Processes that had attached by then; the names are lent.
std::unique_ptr<job::Job> job_as_of(job::Job& whole, std::uint64_t moment) {
  auto job = std::make_unique<job::Job>();
  job->params = whole.params;
  job->journal = whole.journal;
  job->journal.now_ns = moment;
  for (const auto& process : whole.processes) {
    if (process->journal.attach_ns > moment) break;
    job->processes.push_back(std::make_unique<job::Process>(
        job::Process{as_of(process->records, moment), as_of(process->journal, moment)}));
  }
  job->names = std::move(whole.names);
  return job;
}

}  // namespace

job::Report repeat(Replay& replay, job::FindingHistory* history) {
  job::Report report;
  for (std::uint64_t moment : replay.moments) {
    bool last = moment == replay.moments.back();
    std::unique_ptr<job::Job> earlier = last ? nullptr : job_as_of(*replay.job, moment);
    job::Job& job = last ? *replay.job : *earlier;
    job::Analysis analysis = detect::analyse(job);
    analysis.not_checked.insert(analysis.not_checked.end(), replay.remarks.begin(), replay.remarks.end());
    bool has_news = false;
    report = history->update(job, std::move(analysis), &has_news);
    if (!last) replay.job->names = std::move(earlier->names);
  }
  return report;
}

Replay replay(const std::vector<std::string>& directories) {
  if (std::all_of(directories.begin(), directories.end(), holds_recorder_dumps)) {
    return replay_recorder_dumps(directories);
  }
  Collector collector;
  for (const std::string& named : directories) {
    const std::size_t before = collector.processes();
    std::vector<fs::path> nodes = nodes_below(named);
    std::error_code error;
    if (nodes.empty() || fs::is_directory(fs::path(named) / "flight", error)) {
      collector.add_folder(flight_folder(named));
    }
    for (const fs::path& node : nodes) collector.add_folder(node);
    collector.expect_one_job(named, directories[0], before);
  }
  return collector.take();
}

}  // namespace dshang::monitor
