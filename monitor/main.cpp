// dshang: watches a job, explains what it saw.
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "core/job/typing.h"
#include "core/job/version.h"
#include "monitor/cli/brackets.h"
#include "monitor/cli/commands.h"
#include "monitor/hang_command.h"
#include "monitor/warnings.h"

namespace {

using dshang::monitor::cli::Run;

constexpr std::size_t kMistyped = 3;  // letters

bool has_command(const CLI::App& app, const char* word) {
  for (const CLI::App* command : app.get_subcommands({})) {
    if (command->get_name() == word) return true;
  }
  return false;
}

// A first word that is no command: CLI11 would name it among everything that follows, last word first.
int unknown_command(const CLI::App& app, const char* word) {
  std::string known, nearest;
  for (const CLI::App* command : app.get_subcommands({})) {
    const std::string& name = command->get_name();
    known += (known.empty() ? "" : ", ") + name;
    auto distance = [&](const std::string& to) { return dshang::job::typing_distance(word, to); };
    bool is_near = distance(name) <= kMistyped && distance(name) < name.size();
    if (is_near && (nearest.empty() || distance(name) < distance(nearest))) nearest = name;
  }
  std::string text = std::string(word) + " is no command; ";
  text += nearest.empty() ? "there are " + known : "did you mean " + nearest + "?";
  return dshang::monitor::cli::bad_input(text + " (dshang --help)");
}

// The command whose help says more about a mistake.
std::string help_of(const CLI::App& app) {
  std::vector<CLI::App*> parsed = app.get_subcommands();
  return parsed.empty() ? "dshang --help" : "dshang " + parsed.front()->get_name() + " --help";
}

int run(int argc, char** argv) {
  CLI::App app("dshang: finds the rank, the call and the line at which a distributed training job stops",
               "dshang");
  app.set_version_flag("--version", std::string("dshang ") + dshang::job::kVersion);
  bool params = false;
  app.add_flag("--params", params, "list the environment variables");
  app.require_subcommand(0, 1);
  Run chosen;
  dshang::monitor::cli::add_report(app, &chosen);
  dshang::monitor::cli::add_top(app, &chosen);
  dshang::monitor::cli::add_path(app, &chosen);
  dshang::monitor::cli::add_run(app, &chosen);
  dshang::monitor::cli::add_dry_run(app, &chosen);
  dshang::monitor::cli::add_monitor(app, &chosen);
  dshang::monitor::cli::add_doctor(app, &chosen, argc, argv);
  dshang::monitor::cli::add_explain(app, &chosen);
  dshang::monitor::cli::add_issue(app, &chosen, argc, argv);
  if (argc > 1 && *argv[1] != '-' && !has_command(app, argv[1])) return unknown_command(app, argv[1]);
  dshang::monitor::cli::take_marks_off(app);
  try {
    app.parse(dshang::monitor::cli::marked_words(argc, argv));
  } catch (const CLI::Success& done) {
    return app.exit(done);
  } catch (const CLI::Error& error) {
    return dshang::monitor::cli::bad_input(dshang::monitor::cli::without_marks(error.what()) + " (" +
                                           help_of(app) + ")");
  }
  if (params) {
    std::fputs(dshang::monitor::params_text(dshang::monitor::cli::library_path()).c_str(), stdout);
    return 0;
  }
  if (!chosen) {
    std::fputs(app.help().c_str(), stdout);
    return 0;
  }
  return chosen();
}

}  // namespace

int main(int argc, char** argv) {
  if (dshang::monitor::is_minder(argc, argv)) dshang::monitor::mind_command(argv);
  try {
    int status = run(argc, argv);
    bool written = std::cout.flush() && std::fflush(stdout) == 0 && !std::ferror(stdout);
    return written ? status : dshang::monitor::cli::bad_input("standard output cannot be written");
  } catch (const std::exception& error) {
    return dshang::monitor::cli::bad_input(error.what());
  }
}
