#include "monitor/loop.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <filesystem>
#include <optional>
#include <system_error>
#include <thread>

#include "detectors/memory_table.h"
#include "monitor/clock.h"
#include "monitor/left_behind.h"
#include "monitor/metrics/page.h"
#include "monitor/old_spools.h"

namespace dshang::monitor {
namespace {

constexpr std::uint64_t kPatienceForFirstRank = 10 * kSecond;
constexpr std::uint64_t kPatienceForOthers = 200 * kMillisecond;  // after this monitor's start
constexpr std::uint64_t kPatienceForGreeting = 2 * kSecond;
constexpr std::uint64_t kPollWhenSettling = 10 * kMillisecond;
constexpr std::uint64_t kSampleWhenSuspicious = 1 * kSecond, kSampleElse = 5 * kSecond;
// Usually far less than the promised 2 s; on an overloaded machine late files are better than half ones.
constexpr auto kPatienceForFiles = std::chrono::seconds(30);
// The detectors may take this part of a core: they look at all records of all ranks.
constexpr std::uint64_t kAnalysisShare = 8;

// On a thread of its own, which nobody waits for: the files of this job shall not come later for it.
void tidy_up(const Settings& settings) {
  std::string jobs = std::filesystem::path(settings.spool).parent_path().string();
  try {
    std::thread([jobs, user = settings.user] { remove_old_spools(jobs, user); }).detach();
  } catch (const std::system_error&) {
    // No thread to spare: another monitor's start does it.
  }
}

bool is_readable(int fd) {
  pollfd wait{fd, POLLIN, 0};
  return fd >= 0 && poll(&wait, 1, 0) == 1;
}

}  // namespace

Loop::Loop(Settings settings, Server server, std::vector<std::string> warnings)
    : settings_(std::move(settings)),
      server_(std::move(server)),
      warnings_(std::move(warnings)),
      worker_(new Worker),
      started_ns_(now_ns()) {
  if (!metrics_.trouble().empty()) warnings_.push_back(metrics_.trouble());
}

void Loop::run() {
  for (;;) {
    go("waiting", [&] { wait(next_round_ns_); });
    std::uint64_t now = now_ns();
    go("looking for ended ranks", [&] { find_the_dead(); });
    bool anybody_came = attempt_ && !attempt_->attached().empty();
    if (anybody_came && !anybody_alive() && guests_.empty() && !is_readable(server_.descriptor()) &&
        !others_may_come(now))
      break;
    if (anybody_came && adopted_by_a_rank()) break;
    if (!anybody_came && elapsed(started_ns_, now) > kPatienceForFirstRank) return;
    go("the registration of a rank", [&] { accept_guests(now); });
    go("the registration of a rank", [&] { hear_guests(now); });
    go("hearing the ranks", [&] { hear_ranks(); });
    if (now >= next_round_ns_) {
      next_round_ns_ = now + settings_.poll_ns;
      if (attempt_) round(now);
      if (attempt_ && attempt_->settling())
        next_round_ns_ = std::min(next_round_ns_, now + kPollWhenSettling);
    }
  }
  finish();
}

template <typename Part>
void Loop::go(const char* name, Part part) {
  // What fails at once and always must not take a core.
  if (!parts_.run(name, part)) std::this_thread::sleep_for(std::chrono::nanoseconds(settings_.poll_ns));
}

// Ranks shorter than this monitor's start wait for its address, which each of them tries at moments of its
// own: the first to hand over may be gone before the next one does.
bool Loop::others_may_come(std::uint64_t now) const {
  if (elapsed(started_ns_, now) > kPatienceForOthers) return false;
  const auto& attached = attempt_->attached();
  auto world = static_cast<std::size_t>(std::max(attached.front()->process->records.world_size, 0));
  return attached.size() < world;
}

// A rank that is the reaper of its processes and executes another program loses what kept this monitor apart
// from its children (interpose/runtime/keeper.h), and may wait until it has none.
bool Loop::adopted_by_a_rank() const {
  const auto& attached = attempt_->attached();
  return std::any_of(attached.begin(), attached.end(), [parent = getppid()](const auto& one) {
    return one->process->records.pid == parent;
  });
}

bool Loop::anybody_alive() const {
  auto alive = [](const Past& past) { return past.attempt->any_alive(); };
  return (attempt_ && attempt_->any_alive()) || std::any_of(past_.begin(), past_.end(), alive);
}

// Until a round is due, or a rank has something to say or has ended.
void Loop::wait(std::uint64_t until) {
  std::vector<pollfd> watched{{server_.descriptor(), POLLIN, 0}};
  auto watch = [&](int fd) {
    if (fd >= 0) watched.push_back({fd, POLLIN, 0});
  };
  for (const Guest& guest : guests_) watch(guest.connection.socket.get());
  auto watch_attempt = [&](const Attempt& attempt) {
    for (const auto& one : attempt.attached()) {
      watch(one->connection.socket.get());
      watch(one->pidfd.get());
    }
  };
  if (attempt_) watch_attempt(*attempt_);
  for (const Past& past : past_) watch_attempt(*past.attempt);
  std::uint64_t now = now_ns();
  int milliseconds = until > now ? static_cast<int>((until - now + kMillisecond - 1) / kMillisecond) : 0;
  poll(watched.data(), watched.size(), milliseconds);
}

void Loop::accept_guests(std::uint64_t now) {
  while (auto connection = server_.accept()) {
    if (connection->peer.uid == settings_.user) guests_.push_back({std::move(*connection), now});
  }
}

void Loop::hear_guests(std::uint64_t now) {
  for (auto guest = guests_.begin(); guest != guests_.end();) {
    Registration registration;
    std::string why;
    Received received = receive_hello(guest->connection, &registration, &why);
    if (received == Received::kNothing && elapsed(guest->since_ns, now) <= kPatienceForGreeting) {
      ++guest;
      continue;
    }
    Connection connection = std::move(guest->connection);
    guest = guests_.erase(guest);
    if (received == Received::kBad) connection.send(flight::MessageKind::kRefuse, 0, why);
    if (received == Received::kMessage) enter(std::move(connection), std::move(registration));
  }
}

void Loop::enter(Connection connection, Registration registration) {
  const flight::Hello hello = registration.hello;
  if (hello.job != settings_.job) {
    connection.send(flight::MessageKind::kRefuse, 0, "it belongs to another job");
    return;
  }
  if (!attempt_) begin_attempt(true);
  find_the_dead();  // a successor may be quicker than the news of the death
  if (attempt_->is_too_late_for(hello)) {
    connection.send(flight::MessageKind::kRefuse, 0, "it belongs to an earlier attempt");
    return;
  }
  Descriptor error_output = std::move(registration.error_output);
  std::string why;
  auto attached = attach(connection, std::move(registration), &why);
  if (!attached) {
    connection.send(flight::MessageKind::kRefuse, 0, why);  // the rank says so
    return;
  }
  if (attempt_->is_over_for(hello)) {
    end_attempt();
    begin_attempt(false);
  }
  Attached& added = attempt_->add(std::move(attached), hello);
  job_output_.add(added.key, hello.rank, std::move(error_output));
  added.connection.send(flight::MessageKind::kWelcome, 0, settings_.directory);
  if (!said_warnings_ && job_output_.any()) {
    said_warnings_ = true;
    for (const std::string& warning : warnings_) job_output_.say(warning);
  }
}

void Loop::begin_attempt(bool first) {
  std::optional<LeftBehind> left = first ? find_left_behind(settings_) : std::nullopt;
  output_ = std::make_unique<AttemptOutput>(settings_, *worker_, job_output_);
  bool goes_on = left && parts_.run("what an earlier monitor left", [&] {
    attempt_ = std::make_unique<Attempt>(settings_, std::move(left->replay));
  });
  if (goes_on) {
    output_->resume(left->place, left->number);
  } else {
    attempt_ = std::make_unique<Attempt>(settings_);
  }
  if (first) tidy_up(settings_);
  on_hang_.begin_attempt();
  next_sample_ns_ = next_analysis_ns_ = 0;
  analysis_is_due_ = false;
}

void Loop::end_attempt() {
  attempt_->update();
  analyse(now_ns(), true);
  go("writing the files", [&] { output_->finish(*attempt_); });
  past_.push_back({std::move(attempt_)});
  output_.reset();
}

void Loop::hear_ranks() {
  auto hear = [](Attempt& attempt) {
    for (auto& one : attempt.attached()) {
      if (one->connection.socket && drop_messages(one->connection) == Received::kClosed)
        one->connection.socket.reset();
    }
  };
  if (attempt_) hear(*attempt_);
  for (Past& past : past_) hear(*past.attempt);
}

void Loop::find_the_dead() {
  if (attempt_) bury(*attempt_, true);
  for (Past& past : past_) bury(*past.attempt, false);
}

void Loop::bury(Attempt& attempt, bool current) {
  for (auto& one : attempt.attached()) {
    if (!one->alive()) continue;
    bool dead = one->pidfd ? is_readable(one->pidfd.get()) : !still_there(*one);
    if (!dead) continue;
    attempt.end(*one);
    if (current) next_round_ns_ = 0;  // what follows from it is said at once
    // The last rank's copy is closed when the last words are said.
    if (anybody_alive()) job_output_.remove(one->key);
  }
}

void Loop::round(std::uint64_t now) {
  attempt_->update();
  go("looking at processes", [&] {
    if (now < next_sample_ns_) return;
    // Once something is suspicious children are looked at too; before, a pass over /proc is not worth it.
    attempt_->suspicious() ? processes_.refresh() : processes_.clear();
    attempt_->sample(processes_);
    next_sample_ns_ = now + (attempt_->suspicious() ? kSampleWhenSuspicious : kSampleElse);
  });
  analyse(now, false);
  if (attempt_->suspicious()) {
    go("asking for stacks", [&] { attempt_->ask_for_stacks(now); });
    next_sample_ns_ = std::min(next_sample_ns_, now + kSampleWhenSuspicious);
  }
  go("writing the files", [&] { output_->round(*attempt_, now); });
  go("DSHANG_ON_HANG", [&] { on_hang_.round(*attempt_, job_output_, worker_->waiting() == 0, now); });
  go("DSHANG_METRICS", [&] {
    metrics_.round(now, [&] { return metrics_of(attempt_->job(), attempt_->report()); });
  });
  say_blind();
  say_trouble();
}

void Loop::analyse(std::uint64_t now, bool anyway) {
  bool done = false;
  parts_.run("the analysis", [&] {
    if (attempt_->analysis_is_due()) analysis_is_due_ = true;
    if (!anyway && (!analysis_is_due_ || now < next_analysis_ns_)) return;
    analysis_is_due_ = false;
    attempt_->analyse();
    next_analysis_ns_ = now_ns() + attempt_->analysis_cost_ns() * kAnalysisShare;
    done = true;
  });
  if (!done) return;
  go("writing the report", [&] {
    output_->say_news(*attempt_);
    output_->show(*attempt_, now);
  });
}

// Calls on communicators without an entry belong to nothing: the analysis does not see them wait.
void Loop::say_blind() {
  for (auto& one : attempt_->attached()) {
    if (said_blind_ || !one->process->records.dropped_comms) continue;
    said_blind_ = true;
    job_output_.say("rank " + std::to_string(one->rank()) + " has created more than " +
                    std::to_string(flight::kCommEntries) +
                    " communicators; hangs in the later ones are not found");
  }
}

void Loop::say_trouble() {
  for (const std::string& trouble : worker_->take_trouble()) {
    if (!said_trouble_) job_output_.say(trouble + "; training and watching go on");
    said_trouble_ = true;
  }
  std::vector<std::string> failures = parts_.take_news();
  if (attempt_) {
    for (std::string& failure : attempt_->take_trouble()) failures.push_back(std::move(failure));
  }
  for (const std::string& failure : failures)
    job_output_.say(failure + "; the records are kept, watching goes on");
}

// In one piece: other ranks' last words may come at the same time.
void Loop::say_memory() {
  std::string text;
  for (const std::string& line : detect::memory_table(job::make_view(attempt_->job()), settings_.simulated))
    text += "dshang: " + line + "\n";
  if (!text.empty()) job_output_.write(text);
}

void Loop::finish() {
  server_.close();
  guests_.clear();
  attempt_->update();
  analyse(now_ns(), true);
  say_trouble();
  if (!settings_.simulated.empty()) go("the table of memory", [&] { say_memory(); });
  job_output_.close_all();
  go("writing the files", [&] { output_->finish(*attempt_); });
  worker_->drain(kPatienceForFiles);
}

}  // namespace dshang::monitor
