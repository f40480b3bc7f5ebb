// dshang: watches a job, explains what it saw.
#include <cstdio>
#include <exception>

#include "core/job/version.h"
#include "monitor/cli/commands.h"
#include "monitor/warnings.h"

namespace {

using dshang::monitor::cli::Run;

int run(int argc, char** argv) {
  CLI::App app("dshang: finds the rank, the call and the line at which a distributed training job stops",
               "dshang");
  app.set_version_flag("--version", std::string("dshang ") + dshang::job::kVersion);
  bool params = false;
  app.add_flag("--params", params, "list the environment variables");
  app.require_subcommand(0, 1);
  Run chosen;
  dshang::monitor::cli::add_report(app, &chosen);
  dshang::monitor::cli::add_path(app, &chosen);
  dshang::monitor::cli::add_dry_run(app, &chosen);
  dshang::monitor::cli::add_monitor(app, &chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& done) {
    return app.exit(done);
  } catch (const CLI::Error& error) {
    return dshang::monitor::cli::bad_input(std::string(error.what()) + " (dshang --help)");
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
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    return dshang::monitor::cli::bad_input(error.what());
  }
}
