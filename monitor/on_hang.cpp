#include "monitor/on_hang.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "core/job/model.h"
#include "core/rank/param.h"
#include "monitor/hang_command.h"

namespace dshang::monitor {
namespace {

DSHANG_PARAM(choice, ON_HANG, "report", "report|fail|exec:*",
             "what to do at a hang, beside the report: nothing; make the ranks fail, so that the job ends; "
             "run a command");
DSHANG_PARAM(choice, FAIL_ON, "proven", "proven|judged", "how certain a hang must be for fail and exec");
DSHANG_PARAM(seconds, FAIL_AFTER, "5", "0..86400",
             "how long a rank must have waited in a hang that was found before fail or exec is carried out");
DSHANG_PARAM(seconds, FAIL_GRACE, "90", "1..86400",
             "after how long a rank that was made to fail, and neither ends nor goes on, gets SIGTERM");

constexpr std::uint64_t kPatienceForTerm = 10 * kSecond, kPatienceForDisk = 5 * kSecond;
constexpr std::uint64_t kCallsLookedAt = 4096;  // of a rank, the newest
constexpr std::string_view kExec = "exec:";

job::Rank rank_of(const job::RankRecords& records) {
  return records.world_rank ? static_cast<job::Rank>(records.world_rank) - 1 : records.rank;
}

bool waits_since_before(const job::RankRecords& records, std::uint64_t before_ns) {
  for (const job::Comm& comm : records.comms) {
    if (comm.state == flight::CommState::kCreating && comm.begin_ns < before_ns) return true;
  }
  const auto& calls = records.calls;
  std::uint64_t oldest = calls.end() - std::min(calls.end(), kCallsLookedAt);
  for (std::uint64_t n = std::max(calls.first(), oldest); n < calls.end(); ++n) {
    const job::Call& call = calls.at(n);
    if (!call.torn && call.enter_ns < before_ns && job::is_outstanding(call)) return true;
  }
  return false;
}

// What the program's own error will say: one line that fits a message, without half a character at its end.
std::string sentence_of(const job::Finding& finding) {
  constexpr std::size_t kMost = sizeof(flight::Message::text) - 1;
  std::string text = "dshang [" + finding.type + "]: " + finding.summary;
  if (text.size() <= kMost) return text;
  std::size_t end = kMost - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

void signal_to(const Attached& attached, int number) {
  if (attached.pidfd) syscall(SYS_pidfd_send_signal, attached.pidfd.get(), number, nullptr, 0);
}

}  // namespace

bool somebody_waits(const job::Job& job, const job::Finding& finding, std::uint64_t before_ns) {
  std::vector<job::Rank> ranks = finding.waiting;
  ranks.insert(ranks.end(), finding.suspects.begin(), finding.suspects.end());
  if (ranks.empty()) ranks = finding.comm_ranks;
  return std::any_of(job.processes.begin(), job.processes.end(), [&](const auto& process) {
    return !process->journal.death && std::count(ranks.begin(), ranks.end(), rank_of(process->records)) &&
           waits_since_before(process->records, before_ns);
  });
}

OnHang::OnHang() {
  rank::Choice choice = param_ON_HANG.value();
  action_ = static_cast<Action>(choice.index);
  if (action_ == Action::kExec) command_ = choice.text + kExec.size();
  if (param_FAIL_ON.value().index == 1) certainty_ = job::Certainty::kJudged;
  patience_ns_ = static_cast<std::uint64_t>(param_FAIL_AFTER.value() * 1e9);
  grace_ns_ = static_cast<std::uint64_t>(param_FAIL_GRACE.value() * 1e9);
}

void OnHang::begin_attempt() {
  watched_.clear();
  told_.clear();
  ordered_ns_ = 0;
  terminated_ = false;
  commands_ = 0;
}

OnHang::Watched& OnHang::watched(const job::Finding& finding, std::uint64_t now) {
  auto at = std::find_if(watched_.begin(), watched_.end(), [&](const Watched& one) {
    return one.found == finding.found && one.comm == finding.comm;
  });
  if (at == watched_.end())
    return watched_.emplace_back(Watched{finding.found, finding.comm, finding.type, finding.call, now});
  bool is_another_hang = at->over && (at->type != finding.type || at->call != finding.call);
  at->type = finding.type;
  at->call = finding.call;
  if (is_another_hang) at->over = false, at->since_ns = now;
  return *at;
}

void OnHang::round(const Attempt& attempt, const JobOutput& job_output, bool is_written, std::uint64_t now) {
  if (action_ == Action::kReport) return;
  if (ordered_ns_ != 0) end_the_stubborn(attempt, job_output, now);
  for (const job::Finding& finding : attempt.report().findings) {
    bool is_hang = finding.severity == job::Severity::kHang && !finding.resolved && !finding.consequence_of &&
                   finding.certainty >= certainty_;
    if (!is_hang) continue;
    Watched& one = watched(finding, now);
    one.over = one.over || !somebody_waits(attempt.job(), finding, one.since_ns);
    std::uint64_t stood = elapsed(one.since_ns, now);
    bool is_time = is_written ? stood >= patience_ns_ : stood >= patience_ns_ + kPatienceForDisk;
    if (one.acted || one.over || !is_time) continue;
    one.acted = true;
    act(attempt, job_output, finding, now);
  }
}

void OnHang::act(const Attempt& attempt, const JobOutput& job_output, const job::Finding& finding,
                 std::uint64_t now) {
  if (action_ == Action::kFail) return order_failure(attempt, job_output, finding, now);
  if (commands_++ == kMostCommands)
    job_output.say("DSHANG_ON_HANG has run its command " + std::to_string(kMostCommands) +
                   " times and does so no more");
  if (commands_ > kMostCommands) return;
  const std::string& directory = attempt.job().journal.dir;
  bool started = run_command(command_, command_environment(finding, directory), directory + "/on_hang.log",
                             kCommandSeconds);
  job_output.say((started ? "DSHANG_ON_HANG runs " : "DSHANG_ON_HANG cannot run ") + command_);
}

OnHang::Told OnHang::told(const Attached& attached) {
  const job::RankRecords& records = attached.process->records;
  auto ended = std::count_if(records.comms.begin(), records.comms.end(),
                             [](const job::Comm& comm) { return comm.end_ns != 0; });
  return {attached.key, records.calls.end(), records.comms.size(), static_cast<std::size_t>(ended)};
}

void OnHang::order_failure(const Attempt& attempt, const JobOutput& job_output, const job::Finding& finding,
                           std::uint64_t now) {
  job_output.say("DSHANG_ON_HANG=fail: the ranks of this node are made to fail");
  auto kind =
      finding.type == "rank-dead" ? flight::FailureKind::kRankGone : flight::FailureKind::kDisagreement;
  told_.clear();
  for (const auto& one : attempt.attached()) {
    if (!one->alive()) continue;
    if (one->connection.socket)
      one->connection.send(flight::MessageKind::kFail, static_cast<std::uint64_t>(kind),
                           sentence_of(finding));
    told_.push_back(told(*one));
  }
  ordered_ns_ = now;
  terminated_ = false;
}

void OnHang::end_the_stubborn(const Attempt& attempt, const JobOutput& job_output, std::uint64_t now) {
  std::uint64_t patience = terminated_ ? grace_ns_ + kPatienceForTerm : grace_ns_;
  if (elapsed(ordered_ns_, now) < patience) return;
  std::string ranks;
  for (const auto& one : attempt.attached()) {
    // A program that recovers by itself makes calls or ends communicators.
    bool stubborn = one->alive() && std::count(told_.begin(), told_.end(), told(*one)) > 0;
    if (!stubborn) continue;
    ranks += (ranks.empty() ? "" : ", ") + std::to_string(one->rank());
    signal_to(*one, terminated_ ? SIGKILL : SIGTERM);
  }
  if (!ranks.empty())
    job_output.say(std::string("DSHANG_ON_HANG=fail: still there, now ended by ") +
                   (terminated_ ? "SIGKILL" : "SIGTERM") + ": rank " + ranks);
  if (terminated_) ordered_ns_ = 0;
  terminated_ = true;
}

}  // namespace dshang::monitor
