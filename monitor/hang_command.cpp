#include "monitor/hang_command.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "monitor/daemon.h"

namespace dshang::monitor {
namespace {

constexpr unsigned kPatienceForTerm = 5;  // seconds
constexpr const char* kMindWord = "mind-command";

std::string ranks_of(const std::vector<job::Rank>& ranks) {
  std::string text;
  for (job::Rank rank : ranks) text += (text.empty() ? "" : ",") + std::to_string(rank);
  return text;
}

// ---- in the children: only what POSIX allows between fork and exec in a program with threads ----

void close_all_above_2() {
#ifdef SYS_close_range
  if (syscall(SYS_close_range, 3u, ~0u, 0u) == 0) return;
#endif
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  for (int fd = 3; fd < static_cast<int>(limit.rlim_cur); ++fd) close(fd);
}

void connect_streams(const char* log) {
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  int output = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  dup2(null, 0);
  dup2(output >= 0 ? output : null, 1);
  dup2(output >= 0 ? output : null, 2);
  close_all_above_2();
}

// Whether the child has ended within so many seconds.
bool ends_within(pid_t child, unsigned seconds) {
  constexpr timespec kMoment{0, 50'000'000};
  for (unsigned moments = seconds * 20; moments > 0; --moments) {
    if (waitpid(child, nullptr, WNOHANG) != 0) return true;
    nanosleep(&kMoment, nullptr);
  }
  return false;
}

// Starts the command and sees to it that it ends.
[[noreturn]] void mind(const char* command, char* const* environment, unsigned limit_seconds) {
  for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);
  pid_t shell = fork();
  if (shell == 0) {
    setpgid(0, 0);
    const char* arguments[] = {"sh", "-c", command, nullptr};
    execve("/bin/sh", const_cast<char* const*>(arguments), environment);
    _exit(127);
  }
  if (shell < 0 || ends_within(shell, limit_seconds)) _exit(0);
  constexpr std::string_view kLine = "dshang: the command of DSHANG_ON_HANG takes too long and is ended\n";
  [[maybe_unused]] ssize_t written = write(1, kLine.data(), kLine.size());
  kill(-shell, SIGTERM);
  if (!ends_within(shell, kPatienceForTerm)) kill(-shell, SIGKILL);
  _exit(0);
}

}  // namespace

std::vector<std::string> command_environment(const job::Finding& finding, const std::string& directory) {
  std::vector<std::string> entries;
  for (char** at = environ; at && *at; ++at) {
    if (!std::string_view(*at).starts_with("LD_PRELOAD=")) entries.emplace_back(*at);
  }
  entries.push_back("DSHANG_REPORT=" + directory);
  entries.push_back("DSHANG_HANG_CLASS=" + finding.type);
  entries.push_back("DSHANG_HANG_SUMMARY=" + finding.summary);
  entries.push_back(std::string("DSHANG_HANG_CERTAINTY=") + job::text_of(finding.certainty));
  entries.push_back("DSHANG_HANG_SUSPECTS=" + ranks_of(finding.suspects));
  entries.push_back("DSHANG_HANG_WAITING=" + ranks_of(finding.waiting));
  return entries;
}

bool run_command(const std::string& command, const std::vector<std::string>& environment,
                 const std::string& log, unsigned limit_seconds) {
  const std::string limit = std::to_string(limit_seconds);
  const char* minding[] = {"dshang", kMindWord, limit.c_str(), command.c_str(), nullptr};
  std::vector<char*> entries;
  for (const std::string& entry : environment) entries.push_back(const_cast<char*>(entry.c_str()));
  entries.push_back(nullptr);
  pid_t child = fork();
  if (child < 0) return false;
  if (child == 0) {
    pid_t minder = fork();
    if (minder != 0) _exit(minder < 0);
    setsid();
    umask(mask_at_start());
    connect_streams(log.c_str());
    // It is no monitor, and shall not look like one; where /proc is hidden it does.
    execve("/proc/self/exe", const_cast<char* const*>(minding), entries.data());
    mind(command.c_str(), entries.data(), limit_seconds);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool is_minder(int argc, char** argv) { return argc == 4 && std::string_view(argv[1]) == kMindWord; }

void mind_command(char** argv) {
  mind(argv[3], environ, static_cast<unsigned>(std::strtoul(argv[2], nullptr, 10)));
}

}  // namespace dshang::monitor
