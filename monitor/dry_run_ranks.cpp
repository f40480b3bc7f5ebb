// The ranks of a dry run whose command starts none itself.
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "monitor/dry_run.h"

namespace dshang::monitor {
namespace {

using Clock = std::chrono::steady_clock;

// After the first rank that fails the others are left alone so long that they can be seen waiting, then
// ended.
constexpr auto kUntilTerminated = std::chrono::seconds(10);
constexpr auto kUntilKilled = std::chrono::seconds(20);
constexpr int kPollMilliseconds = 200;
constexpr int kPassedOn[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

// A port that was free a moment ago.
int free_port() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  int port = 29500;
  if (fd >= 0 && bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
      getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0) {
    port = ntohs(address.sin_port);
  }
  if (fd >= 0) close(fd);
  return port;
}

class Ranks {
 public:
  Ranks(const DryRunPlan& plan, int size) : plan_(plan), size_(size), port_(free_port()) {}

  int run() {
    sigset_t awaited;
    sigemptyset(&awaited);
    sigaddset(&awaited, SIGCHLD);
    for (int number : kPassedOn) sigaddset(&awaited, number);
    sigset_t before;
    sigprocmask(SIG_BLOCK, &awaited, &before);
    const int signals = signalfd(-1, &awaited, SFD_CLOEXEC | SFD_NONBLOCK);
    for (int rank = 0; rank < size_; ++rank) start(rank, before);
    while (running_ > 0) {
      pollfd waiting{signals, POLLIN, 0};
      poll(&waiting, 1, kPollMilliseconds);
      signalfd_siginfo signal;
      while (read(signals, &signal, sizeof signal) == static_cast<ssize_t>(sizeof signal)) pass_on(signal);
      reap();
      end_the_rest();
    }
    close(signals);
    sigprocmask(SIG_SETMASK, &before, nullptr);
    return status_;
  }

 private:
  void start(int rank, const sigset_t& mask) {
    const pid_t parent = getpid();
    const pid_t process = fork();
    if (process < 0) {
      fprintf(stderr, "dshang: dry-run: cannot start rank %d: %s\n", rank, strerror(errno));
      failed(127);
      return;
    }
    if (process > 0) {
      processes_.push_back(process);
      ++running_;
      return;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    sigprocmask(SIG_SETMASK, &mask, nullptr);
    const std::string size = std::to_string(size_);
    const std::pair<const char*, std::string> settings[] = {
        {"RANK", std::to_string(rank)},
        {"LOCAL_RANK", std::to_string(rank)},
        {"WORLD_SIZE", size},
        {"LOCAL_WORLD_SIZE", size},
        {"GROUP_RANK", "0"},
        {"MASTER_ADDR", "127.0.0.1"},
        {"MASTER_PORT", std::to_string(port_)},
    };
    for (const auto& [name, value] : settings) setenv(name, value.c_str(), 1);
    std::vector<char*> words;
    for (const std::string& word : plan_.command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    execvp(words[0], words.data());
    if (rank == 0) fprintf(stderr, "dshang: dry-run: cannot start %s: %s\n", words[0], strerror(errno));
    _exit(127);
  }

  // The terminal sends Ctrl-C to the ranks itself: they are in its foreground group, too.
  void pass_on(const signalfd_siginfo& signal) {
    if (signal.ssi_signo == SIGCHLD || signal.ssi_code == SI_KERNEL) return;
    send(static_cast<int>(signal.ssi_signo));
  }

  void send(int number) {
    for (pid_t process : processes_) {
      if (process > 0) kill(process, number);
    }
  }

  void reap() {
    for (pid_t& process : processes_) {
      int status = 0;
      if (process <= 0 || waitpid(process, &status, WNOHANG) != process) continue;
      process = 0;
      --running_;
      const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      if (code != 0) failed(code);
    }
  }

  void failed(int code) {
    if (status_ != 0) return;
    status_ = code;
    first_failure_ = Clock::now();
  }

  void end_the_rest() {
    if (status_ == 0 || running_ == 0) return;
    const auto since = Clock::now() - first_failure_;
    if (since > kUntilKilled) {
      send(SIGKILL);
    } else if (since > kUntilTerminated && !terminated_) {
      terminated_ = true;
      send(SIGTERM);
    }
  }

  const DryRunPlan& plan_;
  const int size_;
  const int port_;
  std::vector<pid_t> processes_;  // 0: has ended
  int running_ = 0;
  int status_ = 0;
  bool terminated_ = false;
  Clock::time_point first_failure_;
};

}  // namespace

int run_ranks(const DryRunPlan& plan, int ranks) { return Ranks(plan, ranks).run(); }

}  // namespace dshang::monitor
