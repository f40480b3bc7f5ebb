#include "child.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api.h"

#ifdef __SANITIZE_ADDRESS__
extern "C" void __asan_init();
#endif

namespace {

std::string file_of(const void* function) {
  Dl_info info;
  return dladdr(function, &info) != 0 ? info.dli_fname : "";
}

// An instrumented library wants its runtime in front of everything.
std::string preload() {
  const std::string library = file_of(reinterpret_cast<const void*>(&cudaGetDeviceCount));
#ifdef __SANITIZE_ADDRESS__
  return file_of(reinterpret_cast<const void*>(&__asan_init)) + " " + library;
#else
  return library;
#endif
}

[[noreturn]] void replace_process(const std::vector<std::string>& command,
                                  const std::vector<std::string>& settings, int output) {
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  for (const std::string& setting : settings) {
    const size_t equals = setting.find('=');
    setenv(setting.substr(0, equals).c_str(), setting.substr(equals + 1).c_str(), 1);
  }
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  _exit(127);
}

ChildResult run(const std::vector<std::string>& command, const std::vector<std::string>& settings) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {-1, "no pipe"};
  const pid_t child = fork();
  if (child == 0) replace_process(command, settings, ends[1]);
  close(ends[1]);
  ChildResult result{0, {}};
  char buffer[4096];
  for (ssize_t got; (got = read(ends[0], buffer, sizeof buffer)) > 0;) {
    result.output.append(buffer, static_cast<size_t>(got));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace

ChildResult run_test_in_child(const std::string& tag, const std::vector<std::string>& settings) {
  ChildResult result = run({"/proc/self/exe", tag}, settings);
  if (result.status == 0 && result.output.find(" in 1 test case)") == std::string::npos)
    result.status = -1;  // none ran
  return result;
}

ChildResult run_preloaded(const std::vector<std::string>& command, const std::vector<std::string>& settings) {
  std::vector<std::string> all = settings;
  all.push_back("LD_PRELOAD=" + preload());
  return run(command, all);
}
