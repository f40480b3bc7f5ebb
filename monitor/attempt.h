// One attempt of the job: the processes that registered in it, what is known of them, and what follows from
// it.
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/job/job.h"
#include "core/job/report.h"
#include "core/job/trigger.h"
#include "monitor/attached.h"
#include "monitor/replay.h"
#include "monitor/settings.h"

namespace dshang::monitor {

class Attempt {
 public:
  explicit Attempt(const Settings& settings);
  // Goes on with what a monitor before this one left; its living processes will register again.
  Attempt(const Settings& settings, Replay left);

  // Whether a process that says this of itself cannot be part of this attempt any more: the launcher counts a
  // restart, or the process that had its rank is dead (contract section 2).  A dead process that never made a
  // communicator has had no rank.
  bool is_over_for(const flight::Hello& hello) const;
  // Whether it belongs to an earlier attempt.
  bool is_too_late_for(const flight::Hello& hello) const { return hello.restart_count < restart_count_; }

  // Takes a process in; its first records are read.
  Attached& add(std::unique_ptr<Attached> attached, const flight::Hello& hello);

  // Reads what the living processes have recorded since.
  void update();
  // Reads the last records of a process that has ended, and how it ended.
  void end(Attached& attached);
  // Looks at the living processes from outside.
  void sample(const ProcessTable& processes);

  // Whether the detectors are worth running; to be asked after every update().
  bool analysis_is_due() { return trigger_.look(job_); }
  // Runs the detectors.
  void analyse();
  bool suspicious() const { return trigger_.suspicious(); }
  bool settling() const { return trigger_.settling(); }
  const job::Report& report() const { return report_; }
  bool has_news() const { return has_news_; }  // of the last analyse(): worth a block of text
  // Asks processes for their stacks where the last analysis wanted them, each at most once in `kStacksEvery`.
  void ask_for_stacks(std::uint64_t now);

  // Ranks whose records could not be read any further, each once.
  std::vector<std::string> take_trouble() { return std::exchange(trouble_, {}); }

  // Lines for flight/monitor.log since the last call; all of them again.  A line of time stands for every
  // moment that replay.h has to look at.
  std::string take_journal_lines();
  std::string whole_journal() const;

  // Set once the files have a place.
  void set_place(const std::string& directory, int number);

  std::vector<std::unique_ptr<Attached>>& attached() { return attached_; }
  const std::vector<std::unique_ptr<Attached>>& attached() const { return attached_; }
  const job::Job& job() const { return job_; }
  bool any_alive() const;
  std::uint64_t first_attach_ns() const { return first_attach_ns_; }
  std::uint64_t analysis_cost_ns() const { return analysis_cost_ns_; }

  static constexpr std::uint64_t kStacksEvery = 5'000'000'000;

 private:
  void load(Attached& attached);
  void note(std::string line) { journal_lines_ += line; }
  void note_moment(std::uint64_t moment);

  job::Job job_;
  job::Trigger trigger_;
  job::FindingHistory history_;
  job::Report report_;
  std::vector<std::size_t> wants_stacks_;
  bool has_news_ = false;
  std::vector<std::unique_ptr<Attached>> attached_;
  std::string journal_lines_;
  std::vector<std::string> trouble_;
  std::vector<std::uint64_t> moments_;  // of analyses with news, and of those just before them
  std::uint64_t last_analysis_ns_ = 0;
  std::int32_t restart_count_ = 0;
  std::uint64_t first_attach_ns_ = 0, analysis_cost_ns_ = 0, stacks_request_ = 0;
};

}  // namespace dshang::monitor
