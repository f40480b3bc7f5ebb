// Brings what an attempt knows to its readers: files, the node-local copy, and the words on the job's stderr.
//
// Threads: one at a time; files are written by the Worker, so nothing here waits for a disk.
#pragma once

#include <atomic>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "monitor/attempt.h"
#include "monitor/attempt_files.h"
#include "monitor/job_output.h"
#include "monitor/settings.h"
#include "monitor/unheard_watch.h"
#include "monitor/worker.h"

namespace dshang::monitor {

class AttemptOutput {
 public:
  AttemptOutput(const Settings& settings, Worker& worker, JobOutput& job_output)
      : settings_(settings), worker_(worker), job_output_(job_output) {}

  // Goes on in the directory that another monitor made.
  void resume(const AttemptFiles::Place& place, int number);
  // To be called at every round: makes the directory when all ranks are there or have had their time, says
  // where it is, and writes the journal and the node-local copy.
  void round(Attempt& attempt, std::uint64_t now);
  // After an analysis: the block of text where there is news.
  void say_news(const Attempt& attempt) const;
  // After an analysis that changed the report: the files.
  void show(Attempt& attempt, std::uint64_t now);
  // The last report and all files; afterwards the attempt gets no more of either.  Nothing is left of
  // processes that never became ranks and ended well before the directory was made.
  void finish(Attempt& attempt);

 private:
  // Filled by the worker; empty while the directory could not be made.
  struct Files {
    std::unique_ptr<AttemptFiles> files;
  };
  enum class State { kNotYet, kMaking, kMade, kFailed };

  AttemptFiles::Place place_for(const Attempt& attempt) const;
  bool is_time(const Attempt& attempt, std::uint64_t now) const;
  void make(Attempt& attempt);
  bool look_whether_made(Attempt& attempt);
  void write_journal(Attempt& attempt);
  void write_report(const Attempt& attempt);
  void write_page(const Attempt& attempt);
  // On rank 0's node: who is missing; on the others: who is there.
  void account_for_ranks(const Attempt& attempt, std::uint64_t now);
  void copy_flight(const Attempt& attempt, bool to_spool);
  template <typename Task>
  void post(Task task);

  const Settings& settings_;
  Worker& worker_;
  JobOutput& job_output_;
  std::shared_ptr<Files> files_ = std::make_shared<Files>();
  std::future<int> making_;  // number of the attempt
  State state_ = State::kNotYet;
  AttemptFiles::Place place_;
  int resumed_ = 0;  // number of the attempt that another monitor began
  bool report_is_due_ = false;
  bool page_is_due_ = false;  // report.html is made at news and at the end alone: it is long
  // Whether the last one could not be written; set by the worker.
  std::shared_ptr<std::atomic<bool>> report_is_lost_ = std::make_shared<std::atomic<bool>>(false);
  UnheardWatch unheard_;
  std::size_t ranks_written_ = 0;
  std::uint64_t persisted_ns_ = 0, report_ns_ = 0;
  std::size_t journal_bytes_ = 0;
};

}  // namespace dshang::monitor
