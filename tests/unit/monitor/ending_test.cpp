#include "monitor/ending.h"

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "catch.h"
#include "monitor/proc.h"

using namespace dshang;
using namespace dshang::monitor;
using flight::EndingKind;
using job::EndingKnown;

namespace {

constexpr std::int32_t exited(int status) { return status << 8; }

}  // namespace

TEST_CASE("an ending that only the record tells") {
  job::Death death = death_of(EndingKind::kExit, 3, std::nullopt, std::nullopt);
  CHECK(death.known == EndingKnown::kRecord);
  CHECK_FALSE(death.by_signal);
  CHECK(death.code == 3);
  death = death_of(EndingKind::kSignal, SIGTERM, std::nullopt, std::nullopt);
  CHECK(death.by_signal);
  CHECK(death.code == SIGTERM);
  death = death_of(EndingKind::kAbort, 0, std::nullopt, std::nullopt);
  CHECK(death.by_signal);
  CHECK(death.code == SIGABRT);
}

TEST_CASE("a parent sees eight bits of an exit status") {
  CHECK(death_of(EndingKind::kExit, -1, std::nullopt, std::nullopt).code == 255);
}

TEST_CASE("an ending that only the kernel tells") {
  job::Death death = death_of(EndingKind::kNone, 0, SIGKILL, std::nullopt);
  CHECK(death.known == EndingKnown::kStatus);
  CHECK(death.by_signal);
  CHECK(death.code == SIGKILL);
  death = death_of(EndingKind::kNone, 0, std::nullopt, exited(7));
  CHECK_FALSE(death.by_signal);
  CHECK(death.code == 7);
}

TEST_CASE("a record and a status that agree are a record") {
  CHECK(death_of(EndingKind::kExit, 3, exited(3), std::nullopt).known == EndingKnown::kRecord);
}

TEST_CASE("where they differ the kernel has the last word") {
  job::Death death = death_of(EndingKind::kExit, 0, SIGKILL, std::nullopt);  // killed while it was ending
  CHECK(death.known == EndingKnown::kStatus);
  CHECK(death.code == SIGKILL);
  death = death_of(EndingKind::kSignal, SIGTERM, std::nullopt, exited(0));  // a handler survived the signal
  CHECK_FALSE(death.by_signal);
  CHECK(death.code == 0);
}

TEST_CASE("a zombie's zero may mean that its status is not shown") {
  CHECK(death_of(EndingKind::kSignal, SIGSEGV, exited(0), std::nullopt).code == SIGSEGV);
}

TEST_CASE("an ending that nobody tells is unknown") {
  CHECK(death_of(EndingKind::kNone, 0, std::nullopt, std::nullopt).known == EndingKnown::kNo);
}

TEST_CASE("a process that was not reaped yet is asked as a zombie, one that was by its pidfd") {
  pid_t child = fork();
  if (child == 0) _exit(9);
  int pidfd = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
  REQUIRE(pidfd >= 0);
  siginfo_t info;
  REQUIRE(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) == 0);
  auto stat = read_stat(process_path(child));
  REQUIRE(stat);
  auto zombie = zombie_status(child, stat->start_ticks);
  REQUIRE(zombie);
  CHECK(WEXITSTATUS(*zombie) == 9);
  CHECK_FALSE(zombie_status(child, stat->start_ticks + 1));  // another process of the same number
  waitpid(child, nullptr, 0);
  CHECK_FALSE(zombie_status(child, stat->start_ticks));
  if (auto reaped = reaped_status(pidfd)) CHECK(WEXITSTATUS(*reaped) == 9);  // absent before Linux 6.15
  close(pidfd);
}

TEST_CASE("a descriptor that is no pidfd gives no status") {
  int fds[2];
  REQUIRE(pipe(fds) == 0);
  CHECK_FALSE(reaped_status(fds[0]));
  CHECK_FALSE(reaped_status(-1));
  close(fds[0]);
  close(fds[1]);
}
