#include "doctor/command.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>

extern char** environ;

namespace dshang::doctor {
namespace {

constexpr std::size_t kMost = 4 << 20;  // bytes of output
constexpr std::size_t kLongestFirstLine = 4096;

pid_t start(const std::vector<std::string>& words, int output) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
  pid_t pid = -1;
  int error = posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  return error ? -1 : pid;
}

// Reads until the end or the time limit; true at the end.
bool read_all(int fd, double seconds, std::string* text) {
  auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  char part[16384];
  while (text->size() < kMost) {
    auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
    struct pollfd wait {
      fd, POLLIN, 0
    };
    if (left <= 0 || poll(&wait, 1, static_cast<int>(left)) <= 0) return false;
    ssize_t got = read(fd, part, sizeof part);
    if (got <= 0) return got == 0;
    text->append(part, static_cast<std::size_t>(got));
  }
  return false;
}

}  // namespace

std::string output_of(const std::vector<std::string>& words, double seconds, int* status) {
  *status = -1;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return "";
  pid_t pid = start(words, ends[1]);
  close(ends[1]);
  std::string text;
  bool ended = pid > 0 && read_all(ends[0], seconds, &text);
  close(ends[0]);
  if (pid <= 0) return "";
  if (!ended) kill(pid, SIGKILL);
  int waited = 0;
  if (waitpid(pid, &waited, 0) == pid && ended && WIFEXITED(waited)) *status = WEXITSTATUS(waited);
  return text;
}

std::string output_of(const std::vector<std::string>& words, double seconds) {
  int status = 0;
  return output_of(words, seconds, &status);
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line(kLongestFirstLine, '\0');
  file.read(line.data(), static_cast<std::streamsize>(line.size()));
  line.resize(static_cast<std::size_t>(file.gcount()));
  line.resize(std::min(line.size(), line.find('\n')));
  while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back()))) line.pop_back();
  return line;
}

std::string on_path(const std::string& name) {
  if (name.find('/') != std::string::npos) return access(name.c_str(), X_OK) == 0 ? name : "";
  const char* path = std::getenv("PATH");
  std::istringstream folders(path ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return "";
}

}  // namespace dshang::doctor
