#include "monitor/attempt_output.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include "core/job/report_html.h"
#include "monitor/clock.h"

namespace dshang::monitor {
namespace {

constexpr std::uint64_t kPatienceForRanks = 2 * kSecond;
constexpr std::uint64_t kReportEvery = 2 * kSecond;
constexpr auto kPatienceForDisk = std::chrono::milliseconds(300);
constexpr std::size_t kLongestJournal = 8u << 20;

Ranks attached_ranks(const Attempt& attempt) {
  Ranks ranks;
  for (const auto& one : attempt.attached()) {
    if (one->rank() >= 0) ranks.insert(one->rank());
  }
  return ranks;
}

std::size_t ranks_in(const Attempt& attempt) { return attached_ranks(attempt).size(); }

std::int32_t world_size_of(const Attempt& attempt) {
  std::int32_t size = 0;
  for (const auto& one : attempt.attached()) size = std::max(size, one->process->records.world_size);
  return size;
}

bool has_rank_0(const Attempt& attempt) {
  return std::any_of(attempt.attached().begin(), attempt.attached().end(),
                     [](const auto& one) { return one->rank() == 0; });
}

bool all_provisional(const Attempt& attempt) {
  return std::all_of(attempt.attached().begin(), attempt.attached().end(),
                     [](const auto& one) { return one->process->records.provisional; });
}

std::string count_text(std::size_t ranks, std::int32_t world_size, std::size_t processes) {
  if (ranks == 0)
    return std::to_string(processes) + (processes == 1 ? " process" : " processes") + " without RANK";
  std::string text = std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks");
  bool all = static_cast<std::int64_t>(ranks) >= world_size;
  return all ? text : text + " of " + std::to_string(world_size);
}

std::vector<FlightCopy> copies_of(const Attempt& attempt) {
  std::vector<FlightCopy> copies;
  for (const auto& one : attempt.attached()) {
    if (one->memory) copies.push_back({one->file_name, one->memory});
  }
  return copies;
}

}  // namespace

template <typename Task>
void AttemptOutput::post(Task task) {
  worker_.post([files = files_, task = std::move(task)] {
    if (files->files) task(*files->files);
  });
}

// Rank 0 is here, or belongs here: launchers number the ranks of a node in a row, so that rank 0's node is
// the one on which both numbers of a rank are equal.
AttemptFiles::Place AttemptOutput::place_for(const Attempt& attempt) const {
  AttemptFiles::Place place{settings_.directory, settings_.spool, settings_.host, true};
  if (has_rank_0(attempt)) return place;
  bool known = settings_.node >= 0;
  bool first = known ? settings_.node == 0
                     : std::any_of(attempt.attached().begin(), attempt.attached().end(), [](const auto& one) {
                         const job::RankRecords& records = one->process->records;
                         return records.local_rank < 0 || records.rank == records.local_rank;
                       });
  if (first) return place;
  place.head = false;
  place.directory += "/node-" + (known ? std::to_string(settings_.node) : settings_.host);
  return place;
}

bool AttemptOutput::is_time(const Attempt& attempt, std::uint64_t now) const {
  if (attempt.attached().empty()) return false;
  if (elapsed(attempt.first_attach_ns(), now) >= kPatienceForRanks) return true;
  return !all_provisional(attempt) && static_cast<std::int64_t>(ranks_in(attempt)) >= world_size_of(attempt);
}

void AttemptOutput::resume(const AttemptFiles::Place& place, int number) {
  place_ = place;
  resumed_ = number;
}

void AttemptOutput::make(Attempt& attempt) {
  state_ = State::kMaking;
  if (!resumed_) place_ = place_for(attempt);
  auto made = std::make_shared<std::promise<int>>();
  making_ = made->get_future();
  worker_.post([files = files_, place = place_, number = resumed_, made] {
    try {
      if (files->files) files->files->remove_all();
      files->files = std::make_unique<AttemptFiles>(place, number);
      made->set_value(files->files->number());
    } catch (...) {
      files->files.reset();
      made->set_value(0);
      throw;
    }
  });
  post([](AttemptFiles& files) { files.open_spool(); });
  if (making_.wait_for(kPatienceForDisk) == std::future_status::ready) look_whether_made(attempt);
}

bool AttemptOutput::look_whether_made(Attempt& attempt) {
  if (state_ != State::kMaking) return state_ == State::kMade;
  if (making_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return false;
  int number = making_.get();
  if (number == 0) {
    state_ = State::kFailed;
    return false;
  }
  state_ = State::kMade;
  // Reports name the job's directory, not a node's part of it.
  std::string directory = place_.directory;
  if (!place_.head) directory.resize(directory.rfind('/'));
  attempt.set_place(directory, number);
  attempt.take_journal_lines();
  std::string journal = attempt.whole_journal();
  journal_bytes_ = journal.size();
  post([journal = std::move(journal)](AttemptFiles& files) { files.replace_journal(journal); });
  if (place_.head) {
    job_output_.say(std::string(resumed_ ? "the monitor was started again; " : "") + "watching " +
                    count_text(ranks_in(attempt), world_size_of(attempt), attempt.attached().size()) +
                    " on " + settings_.host + ", files in " + directory);
  }
  if (report_is_due_) write_report(attempt);
  return true;
}

void AttemptOutput::round(Attempt& attempt, std::uint64_t now) {
  if (state_ == State::kNotYet && is_time(attempt, now)) make(attempt);
  if (!look_whether_made(attempt)) return;
  if (!place_.head && has_rank_0(attempt)) {  // it came late
    resumed_ = 0;
    make(attempt);
    return;
  }
  write_journal(attempt);
  account_for_ranks(attempt, now);
  if (page_is_due_) write_page(attempt);  // the directory was not there when it became due
  // A disk that is slower than that gets no more work than it can do.
  if (elapsed(persisted_ns_, now) >= settings_.persist_ns && worker_.waiting() < 8) {
    persisted_ns_ = now;
    copy_flight(attempt, true);
  }
}

void AttemptOutput::account_for_ranks(const Attempt& attempt, std::uint64_t now) {
  if (place_.head) {
    unheard_.round(
        {attached_ranks(attempt), world_size_of(attempt), attempt.first_attach_ns(), place_.directory},
        worker_, job_output_, now);
  } else if (std::size_t count = ranks_in(attempt); count != ranks_written_) {
    ranks_written_ = count;
    std::string text;
    for (std::int32_t rank : attached_ranks(attempt)) text += std::to_string(rank) + "\n";
    post([text](AttemptFiles& files) { files.write_ranks(text); });
  }
}

void AttemptOutput::write_journal(Attempt& attempt) {
  std::string lines = attempt.take_journal_lines();
  if (lines.empty()) return;
  journal_bytes_ += lines.size();
  if (journal_bytes_ > kLongestJournal) {
    // Old samples are forgotten here as they are in memory.
    std::string journal = attempt.whole_journal();
    journal_bytes_ = journal.size();
    post([journal = std::move(journal)](AttemptFiles& files) { files.replace_journal(journal); });
  } else {
    post([lines = std::move(lines)](AttemptFiles& files) { files.append_journal(lines); });
  }
}

void AttemptOutput::write_report(const Attempt& attempt) {
  report_is_due_ = false;
  report_ns_ = now_ns();
  post([json = job::json_of(attempt.report()), text = job::text_of(attempt.report()),
        lost = report_is_lost_](AttemptFiles& files) {
    *lost = true;
    files.write_report(json, text);
    *lost = false;
  });
}

// Behind everything else: a page that cannot be made or written costs nothing else.
void AttemptOutput::write_page(const Attempt& attempt) {
  page_is_due_ = false;
  post([html = job::html_of(attempt.job(), attempt.report())](AttemptFiles& files) {
    files.write_page(html);
  });
}

void AttemptOutput::copy_flight(const Attempt& attempt, bool to_spool) {
  post([copies = copies_of(attempt), to_spool](AttemptFiles& files) {
    to_spool ? files.spool_flight(copies) : files.copy_flight(copies);
  });
}

void AttemptOutput::say_news(const Attempt& attempt) const {
  if (!attempt.has_news() || attempt.report().findings.empty()) return;
  job::Report report = attempt.report();
  if (state_ == State::kFailed || *report_is_lost_) report.dir.clear();  // there is none to be read
  job_output_.write(job::block_of(report, kLongestBlock));
}

void AttemptOutput::show(Attempt& attempt, std::uint64_t now) {
  if (attempt.report().findings.empty()) return;
  if (!attempt.has_news() && elapsed(report_ns_, now) < kReportEvery) return;
  report_is_due_ = true;
  page_is_due_ = page_is_due_ || attempt.has_news();
  if (state_ == State::kNotYet) make(attempt);
  if (!look_whether_made(attempt)) return;
  if (report_is_due_) write_report(attempt);
  if (attempt.has_news()) {
    copy_flight(attempt, false);
    write_journal(attempt);  // behind these: the moment that it names can be looked at again from then on
  }
  if (page_is_due_) write_page(attempt);
}

void AttemptOutput::finish(Attempt& attempt) {
  bool worth_it =
      !attempt.report().findings.empty() || !all_provisional(attempt) || settings_.directory_given;
  if (state_ == State::kNotYet && worth_it && !attempt.attached().empty()) make(attempt);
  if (state_ == State::kMaking) making_.wait_for(std::chrono::seconds(1));
  if (!look_whether_made(attempt)) return;
  write_journal(attempt);
  std::string end = job::line_of_time(attempt.job().journal.now_ns) + job::line_of_end();
  post([end](AttemptFiles& files) { files.append_journal(end); });
  write_report(attempt);
  copy_flight(attempt, false);
  post([](AttemptFiles& files) { files.remove_spool(); });
  write_page(attempt);
}

}  // namespace dshang::monitor
