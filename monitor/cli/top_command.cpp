#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "monitor/cli/commands.h"
#include "monitor/top/screen.h"

namespace dshang::monitor::cli {
namespace {

constexpr std::size_t kUsualWidth = 80;
constexpr std::size_t kPipeWidth = 120;

struct Options {
  std::string job;
  bool once = false, group = false;
  double interval = 2;
};

std::size_t width_of_output() {
  winsize size{};
  if (!isatty(STDOUT_FILENO)) return kPipeWidth;
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsualWidth;
}

int run(const Options& options) {
  const LiveJob job(options.job);
  if (!options.once && isatty(STDOUT_FILENO) && isatty(STDIN_FILENO)) return show_live(job, options.interval);
  if (!options.once) return bad_input("top: this is no terminal; --once prints the table");
  const std::string text = text_of(job.look(), width_of_output(), options.group);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

}  // namespace

void add_top(CLI::App& app, Run* chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* top = app.add_subcommand("top", "what the ranks of a running job do, live");
  top
      ->add_option("DIR|JOB", options->job,
                  "DSHANG_DIR of the job, or its name; default: the one job that runs on this machine")
      ->check(not_empty());
  top->add_flag("--once", options->once, "print the table and end");
  top->add_flag("--group", options->group, "with --once: ranks in an equal state share a row");
  top->add_option("--interval", options->interval, "seconds between looks")
      ->check(CLI::Range(0.2, 3600.0))
      ->capture_default_str();
  top->callback([chosen, options] { *chosen = [options] { return run(*options); }; });
}

}  // namespace dshang::monitor::cli
