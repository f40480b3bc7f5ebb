#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "explain/log_file.h"
#include "explain/output.h"
#include "monitor/cli/commands.h"

namespace dshang::monitor::cli {
namespace {

constexpr double kQuiet = 1;  // seconds without a bar
constexpr int kBarWidth = 30;

struct Options {
  std::vector<std::string> logs;
  bool json = false, entries = false;
};

// On a terminal's standard error, for what takes longer than a moment.
class Bar {
 public:
  explicit Bar(std::size_t files) : files_(files), shown_(isatty(STDERR_FILENO) == 1) {}
  ~Bar() {
    if (drawn_) std::fputs("\r\x1b[K", stderr);
  }
  void show(std::size_t file, double part) {
    std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin_;
    if (!shown_ || passed.count() < kQuiet) return;
    drawn_ = true;
    if (part < 0) {
      std::fprintf(stderr, "\r\x1b[Kdshang: %.0f s", passed.count());
      return;
    }
    double all = (static_cast<double>(file) + part) / static_cast<double>(files_);
    int full = static_cast<int>(all * kBarWidth);
    std::fprintf(stderr, "\r\x1b[Kdshang: [%s%s] %3.0f %%",
                 std::string(static_cast<std::size_t>(full), '#').c_str(),
                 std::string(static_cast<std::size_t>(kBarWidth - full), ' ').c_str(), 100 * all);
  }

 private:
  std::size_t files_;
  bool shown_, drawn_ = false;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

int print(const std::string& text, int status) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  return status;
}

int run(const Options& options) {
  if (options.entries) return print(options.json ? explain::entries_json() : explain::entries_text(), 0);
  std::vector<std::string> logs = options.logs;
  if (logs.empty()) {
    if (isatty(STDIN_FILENO))
      return bad_input("explain: name a log, or give one on standard input (dshang explain --help)");
    logs.push_back("-");
  }
  if (std::count(logs.begin(), logs.end(), "-") > 1)
    return bad_input("explain: standard input can be read once, and is named more often");
  explain::Observed observed;
  {
    Bar bar(logs.size());
    for (std::size_t i = 0; i < logs.size(); ++i)
      explain::read_log(logs[i], &observed, [&](double part) { bar.show(i, part); });
  }
  std::vector<explain::Finding> findings = explain::explain(observed);
  return print(options.json ? explain::json_of(findings, observed) : explain::text_of(findings, observed),
               findings.empty() && !explain::unexplained_failure(findings, observed) ? 0 : 1);
}

}  // namespace

void add_explain(CLI::App& app, Run* chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("explain", "what happened, from the logs of a job");
  verb->add_option("LOG", options->logs,
                   "logs, packed by gzip or not; without one, and for -, standard input")
      ->check(not_empty());
  verb->add_flag("--json", options->json, "all findings as JSON");
  verb->add_flag("--entries", options->entries, "list the errors that are known");
  verb->callback([options, chosen] { *chosen = [options] { return run(*options); }; });
}

}  // namespace dshang::monitor::cli
