#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <cstring>
#include <memory>

#include "monitor/cli/commands.h"
#include "monitor/daemon.h"
#include "monitor/loop.h"
#include "monitor/server.h"
#include "monitor/settings.h"
#include "monitor/warnings.h"

namespace dshang::monitor::cli {
namespace {

struct Options {
  std::string job;
  bool foreground = false, socket_on_stdin = false;
};

// A rank may be started with standard streams closed: the sockets made here must not take their places, which
// a daemon fills with /dev/null.
void fill_standard_streams() {
  int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  while (fd >= 0 && fd <= STDERR_FILENO) fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (fd >= 0) close(fd);
}

// Above the standard streams, of which it is none from here on.
Descriptor take_socket_from_stdin() {
  Descriptor socket(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (socket) close(STDIN_FILENO);
  return socket;
}

int run(const Options& options) {
  Descriptor socket = options.socket_on_stdin ? take_socket_from_stdin() : Descriptor();
  fill_standard_streams();
  std::uint64_t job = 0;
  const char* end = options.job.data() + options.job.size();
  auto [at, error] = std::from_chars(options.job.data(), end, job, 16);
  if (error != std::errc() || at != end || job == 0) return bad_input("--job: not a hexadecimal number");
  Settings settings = read_settings(job);
  Server server;
  if (options.socket_on_stdin) {
    if (!server.adopt(std::move(socket))) return bad_input("--socket-on-stdin: nothing listens there");
  } else if (!server.listen(settings.user, job)) {
    if (errno == EADDRINUSE) return 0;  // the job has a monitor already
    return bad_input(std::string("no monitor: cannot listen: ") + std::strerror(errno));
  }
  if (options.foreground) {
    stay_in_foreground();
  } else if (!become_daemon(server.descriptor())) {
    return bad_input(std::string("no monitor: ") + std::strerror(errno));
  }
  Loop loop(std::move(settings), std::move(server), environment_warnings(library_path()));
  loop.run();
  // Whatever still hangs in a file system, or reads the metrics slowly, must not keep this process: nothing
  // is destroyed.
  _exit(0);
}

}  // namespace

void add_monitor(CLI::App& app, Run* chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* monitor = app.add_subcommand("monitor", "watch a job; started by its first rank");
  monitor->add_option("--job", options->job, "the job's number, hexadecimal")->required();
  monitor->add_flag("--socket-on-stdin", options->socket_on_stdin,
                    "standard input listens at the job's address");
  monitor->add_flag("--foreground", options->foreground, "stay in this process");
  monitor->callback([chosen, options] { *chosen = [options] { return run(*options); }; });
}

}  // namespace dshang::monitor::cli
