#include "monitor/on_hang.h"

#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "core/rank/param.h"
#include "monitor/clock.h"

namespace dshang::monitor {
namespace {

DSHANG_PARAM(choice, ON_HANG, "report", "report|fail|exec:*",
             "what to do at a hang: report it; end the job's ranks too; run a command too");
DSHANG_PARAM(choice, FAIL_ON, "proven", "proven|judged", "how certain a hang must be for fail and exec");

constexpr std::uint64_t kPatienceForTerm = 10 * kSecond, kPatienceForDisk = 5 * kSecond;
constexpr std::string_view kExec = "exec:";

void signal_all(const Attempt& attempt, int number) {
  for (const auto& one : attempt.attached()) {
    if (one->alive() && one->pidfd) syscall(SYS_pidfd_send_signal, one->pidfd.get(), number, nullptr, 0);
  }
}

// The shell is nobody's child here: its end needs no attention.
bool run_shell(const std::string& command, const std::string& report) {
  pid_t child = fork();
  if (child < 0) return false;
  if (child == 0) {
    if (fork() != 0) _exit(0);
    for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);
    setenv("DSHANG_REPORT", report.c_str(), 1);
    unsetenv("LD_PRELOAD");
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(127);
  }
  waitpid(child, nullptr, 0);
  return true;
}

}  // namespace

OnHang::OnHang() {
  rank::Choice choice = param_ON_HANG.value();
  action_ = static_cast<Action>(choice.index);
  if (action_ == Action::kExec) command_ = choice.text + kExec.size();
  if (param_FAIL_ON.value().index == 1) certainty_ = job::Certainty::kJudged;
}

bool has_hang(const job::Report& report, job::Certainty certainty) {
  return std::any_of(report.findings.begin(), report.findings.end(), [&](const job::Finding& finding) {
    return finding.severity == job::Severity::kHang && !finding.resolved && finding.certainty >= certainty;
  });
}

void OnHang::act(const Attempt& attempt, const JobOutput& job_output) {
  if (action_ == Action::kExec) {
    bool started = run_shell(command_, attempt.job().journal.dir);
    job_output.say((started ? "DSHANG_ON_HANG runs " : "DSHANG_ON_HANG cannot run ") + command_);
  } else {
    job_output.say("DSHANG_ON_HANG=fail: ending the ranks of this node");
    signal_all(attempt, SIGTERM);
  }
}

void OnHang::round(const Attempt& attempt, const JobOutput& job_output, bool is_written, std::uint64_t now) {
  if (action_ == Action::kReport) return;
  if (acted_ns_ != 0) {
    bool stubborn = action_ == Action::kFail && !killed_ && elapsed(acted_ns_, now) >= kPatienceForTerm;
    if (stubborn) signal_all(attempt, SIGKILL);
    killed_ = killed_ || stubborn;
    return;
  }
  if (!has_hang(attempt.report(), certainty_)) {
    seen_ns_ = 0;
    return;
  }
  if (seen_ns_ == 0) seen_ns_ = now;
  if (!is_written && elapsed(seen_ns_, now) < kPatienceForDisk) return;
  acted_ns_ = now;
  killed_ = false;
  act(attempt, job_output);
}

}  // namespace dshang::monitor
