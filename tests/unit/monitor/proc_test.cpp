#include "monitor/proc.h"

#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>

#include "catch.h"
#include "monitor/host_watch.h"

using namespace dshang;
using namespace dshang::monitor;

TEST_CASE("a stat line whose command name holds brackets and blanks is read") {
  std::string line = "42 (a) b (c) S 7 1 1 0 -1 4194304 10 0 0 0 300 20 5 6 20 0 3 0 98765 1000 10";
  for (int field = 25; field < 52; ++field) line += " 0";
  auto stat = parse_stat(line + " 9 0");
  REQUIRE(stat);
  CHECK(stat->state == 'S');
  CHECK(stat->parent == 7);
  CHECK(stat->cpu_ticks == 320);
  CHECK(stat->reaped_ticks == 11);
  CHECK(stat->start_ticks == 98765);
}

TEST_CASE("a line that is no stat line is refused") {
  CHECK_FALSE(parse_stat(""));
  CHECK_FALSE(parse_stat("42 (cat"));
  CHECK_FALSE(parse_stat("42 (cat) S 1 2 3"));
}

TEST_CASE("what cannot be read is absent") {
  CHECK_FALSE(read_stat("/proc/0"));
  CHECK_FALSE(read_io("/proc/0"));
  CHECK(read_wchan("/proc/0").empty());
  CHECK(read_syscall("/proc/0").empty());
}

TEST_CASE("children and their children are found") {
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  pid_t child = fork();
  if (child == 0) {
    if (fork() == 0) {
      (void)!write(ready[1], "x", 1);
      pause();
    }
    pause();
  }
  char letter;
  REQUIRE(read(ready[0], &letter, 1) == 1);
  ProcessTable table;
  table.refresh();
  auto found = table.descendants(getpid());
  CHECK(std::find(found.begin(), found.end(), child) != found.end());
  auto below = table.descendants(child);
  CHECK(below.size() == 1);
  for (pid_t pid : below) kill(pid, SIGKILL);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(ready[0]);
  close(ready[1]);
}

TEST_CASE("a sum over parts that come and go does not fall") {
  GrowingSum sum;
  sum.part(1, 100, true);  // had that before anybody looked
  sum.part(2, 50, false);  // came since
  CHECK(sum.total() == 50);
  sum.forget_others();
  sum.part(1, 130, true);
  CHECK(sum.forget_others() == 50);  // part 2 has gone
  CHECK(sum.total() == 80);
  sum.part(1, 20, true);  // a number that falls adds nothing
  CHECK(sum.total() == 80);
}

namespace {

void burn(double seconds) {
  timespec used;
  do {
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  } while (static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9 < seconds);
}

}  // namespace

TEST_CASE("a process whose main thread sleeps while another one wants a core is runnable") {
  int told[2];
  REQUIRE(pipe(told) == 0);
  pid_t child = fork();
  if (child == 0) {
    std::thread([&] {
      pid_t tid = gettid();
      (void)!write(told[1], &tid, sizeof tid);
      while (true) {
      }
    }).detach();
    while (true) pause();
  }
  pid_t busy;
  REQUIRE(read(told[0], &busy, sizeof busy) == sizeof busy);
  while (read_stat("/proc/" + std::to_string(child))->state != 'S') usleep(1000);
  job::Thread main_thread, worker;
  main_thread.tid = static_cast<std::uint32_t>(child);
  worker.tid = static_cast<std::uint32_t>(busy);
  main_thread.flags = worker.flags = flight::kThreadCalls;
  ProcessTable table;
  HostWatch watch(child);
  CHECK(watch.look({main_thread}, table).state == 'S');
  CHECK(watch.look({main_thread, worker}, table).state == 'R');
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(told[0]);
  close(told[1]);
}

TEST_CASE("the CPU time of a child that ends between two looks is counted once") {
  HostWatch watch(getpid());
  ProcessTable table;
  job::Thread main_thread;
  main_thread.tid = static_cast<std::uint32_t>(getpid());
  main_thread.flags = flight::kThreadCalls;
  table.refresh();
  job::HostSample first = watch.look({main_thread}, table);
  REQUIRE(first.cpu_seconds);
  CHECK(first.state == 'R');
  pid_t child = fork();
  if (child == 0) {
    burn(0.5);
    _exit(0);
  }
  usleep(200000);
  table.refresh();
  watch.look({main_thread}, table);
  waitpid(child, nullptr, 0);
  table.refresh();
  job::HostSample last = watch.look({main_thread}, table);
  REQUIRE(last.cpu_seconds);
  double grown = *last.cpu_seconds - *first.cpu_seconds;
  CHECK(grown > 0.2);
  CHECK(grown < 0.8);
}

TEST_CASE("the CPU time of other threads is told apart from that of the threads that work for the job") {
  HostWatch watch(getpid());
  ProcessTable table;
  job::Thread main_thread, own;
  main_thread.tid = static_cast<std::uint32_t>(getpid());
  main_thread.flags = flight::kThreadCalls;
  own.flags = flight::kThreadOwn;
  std::atomic<std::uint32_t> own_tid{0};
  std::atomic<bool> over{false};
  auto spin = [&] {
    while (!over) {
    }
  };
  std::thread helper([&] {
    own_tid = static_cast<std::uint32_t>(syscall(SYS_gettid));
    spin();
  });
  while (!own_tid) usleep(1000);
  own.tid = own_tid;
  table.refresh();
  job::HostSample first = watch.look({main_thread, own}, table);
  std::thread pool(spin);
  usleep(1000000);
  table.refresh();
  job::HostSample last = watch.look({main_thread, own}, table);
  over = true;
  helper.join();
  pool.join();
  REQUIRE(first.other_cpu_seconds);
  REQUIRE(last.other_cpu_seconds);
  double others = *last.other_cpu_seconds - *first.other_cpu_seconds;
  CHECK(others > 0.05);
  CHECK(others < 1.3);  // without the helper's share it is at most what one thread can use
  CHECK(*last.cpu_seconds - *first.cpu_seconds < 0.2);
}
