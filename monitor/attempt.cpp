#include "monitor/attempt.h"

#include <algorithm>
#include <exception>

#include "core/job/load.h"
#include "detectors/run.h"
#include "monitor/clock.h"
#include "monitor/ending.h"

namespace dshang::monitor {
namespace {

constexpr std::size_t kSamplesKept = 600;

// Another image of the same process (exec), or the same one that connects again.
bool is_same_process(const Attached& attached, std::int32_t pid, std::uint64_t start_ticks) {
  const job::ProcessJournal& journal = attached.process->journal;
  return attached.alive() && start_ticks != 0 && journal.pid == pid && journal.pid_start_ticks == start_ticks;
}

// Stands for a process until it registers again.
std::unique_ptr<Attached> await(job::Process& process, std::size_t index) {
  auto attached = std::make_unique<Attached>();
  attached->process = &process;
  attached->index = index;
  attached->pid = process.journal.pid;
  attached->watch = HostWatch(attached->pid);
  return attached;
}

}  // namespace

Attempt::Attempt(const Settings& settings) {
  job_.params = job::params_from(settings.parameters);
  job_.journal.host = settings.host;
  job_.journal.dir = settings.directory;
  job_.journal.parameters = settings.parameters;
}

Attempt::Attempt(const Settings& settings, Replay left) : Attempt(settings) {
  job::Report known = repeat(left, &history_);
  report_ = std::move(known);
  moments_ = std::move(left.moments);
  job_.names = std::move(left.job->names);
  job_.processes = std::move(left.job->processes);
  std::vector<std::string> parameters = std::move(job_.journal.parameters);
  job_.journal = std::move(left.job->journal);
  job_.journal.parameters = std::move(parameters);
  first_attach_ns_ = now_ns();
  for (std::size_t i = 0; i < job_.processes.size(); ++i) {
    job::Process& process = *job_.processes[i];
    restart_count_ = std::max(restart_count_, process.records.restart_count);
    attached_.push_back(await(process, i));
  }
}

bool Attempt::is_over_for(const flight::Hello& hello) const {
  if (attached_.empty()) return false;
  if (hello.restart_count > restart_count_) return true;
  return hello.rank >= 0 && std::any_of(attached_.begin(), attached_.end(), [&](const auto& earlier) {
           return !earlier->alive() && !earlier->process->records.provisional &&
                  earlier->rank() == hello.rank;
         });
}

Attached& Attempt::add(std::unique_ptr<Attached> attached, const flight::Hello& hello) {
  const flight::Header& header = attached->reader.header();
  std::int32_t pid = header.pid;
  std::uint64_t start_ticks = header.pid_start_ticks;
  if (attached_.empty()) {
    restart_count_ = hello.restart_count;
    first_attach_ns_ = now_ns();
  }
  auto same = std::find_if(attached_.begin(), attached_.end(),
                           [&](const auto& earlier) { return is_same_process(*earlier, pid, start_ticks); });
  if (same != attached_.end()) {
    (*same)->process->records = {};
    attached->process = (*same)->process;
    attached->index = (*same)->index;
    *same = std::move(attached);
    load(**same);
    return **same;
  }
  auto process = std::make_unique<job::Process>();
  process->journal.pid = pid;
  process->journal.pid_start_ticks = start_ticks;
  process->journal.attach_ns = now_ns();
  attached->process = process.get();
  attached->index = job_.processes.size();
  job_.processes.push_back(std::move(process));
  attached_.push_back(std::move(attached));
  Attached& added = *attached_.back();
  load(added);
  if (job_.journal.start_ns == 0) {
    job_.journal.start_ns = added.process->records.start_ns;
    job_.journal.start_real_ns = added.process->records.start_real_ns;
  }
  note(line_of_attach(added.process->journal));
  return added;
}

void Attempt::load(Attached& attached) {
  if (!attached.reader || attached.unreadable) return;
  try {
    job::update(attached.process->records, attached.reader, job_.names, attached.load);
  } catch (const std::exception& error) {
    attached.unreadable = true;
    trouble_.push_back("reading the records of rank " + std::to_string(attached.rank()) +
                       " failed: " + error.what());
  }
}

void Attempt::update() {
  for (auto& attached : attached_) {
    if (attached->alive()) load(*attached);
  }
  job_.journal.now_ns = now_ns();  // not before any time in it
}

void Attempt::end(Attached& attached) {
  load(attached);
  attached.process->journal.death = read_death(attached.process->records, attached.pid, attached.pidfd.get());
  attached.watch.memory().explain(*attached.process->journal.death);
  attached.connection.socket.reset();
  attached.pidfd.reset();
  note(line_of_death(attached.process->journal));
}

void Attempt::sample(const ProcessTable& processes) {
  for (auto& attached : attached_) {
    if (!attached->alive() || attached->pid == 0) continue;
    job::ProcessJournal& journal = attached->process->journal;
    journal.samples.push_back(attached->watch.look(attached->process->records.threads, processes));
    journal.samples.back().graph_launches = attached->process->records.graph_launches;
    if (journal.samples.size() > kSamplesKept) journal.samples.erase(journal.samples.begin());
    note(line_of_sample(journal, journal.samples.back()));
  }
}

void Attempt::analyse() {
  std::uint64_t begin = now_ns();
  has_news_ = false;
  job::Analysis analysis = detect::analyse(job_);
  for (const auto& one : attached_) {
    if (one->unreadable)
      analysis.not_checked.push_back("rank " + std::to_string(one->rank()) +
                                     ": not heard from since reading its records failed");
  }
  wants_stacks_ = analysis.wants_stacks;
  report_ = history_.update(job_, std::move(analysis), &has_news_);
  // What has ended by now is told as it was at the look before.
  if (has_news_ && last_analysis_ns_ != 0) note_moment(last_analysis_ns_);
  if (has_news_) note_moment(job_.journal.now_ns);
  last_analysis_ns_ = job_.journal.now_ns;
  analysis_cost_ns_ = now_ns() - begin;
}

void Attempt::ask_for_stacks(std::uint64_t now) {
  for (std::size_t index : wants_stacks_) {
    auto at = std::find_if(attached_.begin(), attached_.end(),
                           [&](const auto& one) { return one->index == index; });
    if (at == attached_.end() || !(*at)->alive() || !(*at)->connection.socket) continue;
    Attached& attached = **at;
    if (attached.asked_ns != 0 && elapsed(attached.asked_ns, now) < kStacksEvery) continue;
    attached.asked_ns = now;
    attached.connection.send(flight::MessageKind::kStacks, ++stacks_request_);
  }
}

bool Attempt::any_alive() const {
  return std::any_of(attached_.begin(), attached_.end(), [](const auto& one) { return one->alive(); });
}

void Attempt::set_place(const std::string& directory, int number) {
  job_.journal.dir = directory;
  job_.journal.attempt = number;
}

std::string Attempt::take_journal_lines() {
  std::string lines = std::move(journal_lines_);
  journal_lines_.clear();
  return lines;
}

void Attempt::note_moment(std::uint64_t moment) {
  if (!moments_.empty() && moments_.back() == moment) return;
  moments_.push_back(moment);
  note(job::line_of_time(moment));
}

std::string Attempt::whole_journal() const {
  std::string text = line_of_start(job_.journal);
  for (const auto& process : job_.processes) {
    text += line_of_attach(process->journal);
    for (const job::HostSample& sample : process->journal.samples)
      text += line_of_sample(process->journal, sample);
    if (process->journal.death) text += line_of_death(process->journal);
  }
  for (std::uint64_t moment : moments_) text += job::line_of_time(moment);
  return text;
}

}  // namespace dshang::monitor
