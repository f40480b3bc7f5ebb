#include "monitor/cli/commands.h"
#include "monitor/dry_run.h"

namespace dshang::monitor::cli {
namespace {

// Said in place of CLI11's own complaint; the range is checked with the plan.
std::string not_a_number(const std::string& text) {
  bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos && text.size() < 9;
  return digits ? "" : text + " is no number of ranks";
}

}  // namespace

void add_dry_run(CLI::App& app, Run* chosen) {
  auto options = std::make_shared<DryRunOptions>();
  options->ranks = 2;
  CLI::App* verb =
      app.add_subcommand("dry-run", "run a training command on simulated GPUs, without any real one");
  verb->add_option("-n,--ranks", options->ranks, "processes, and devices of the simulated machine, 1 to 64")
      ->check(CLI::Validator(not_a_number, ""))
      ->capture_default_str();
  verb->add_option("--gpu", options->gpu, "whose memory a device has: h100-80g, a100-40g, ...");
  verb->add_option(
          "--numerics", options->numerics,
          "int: integers are right, computed floats are 0; small: small tensors are right; off: none")
      ->capture_default_str();
  verb->add_option("command", options->command, "the command, after --")->required();
  verb->positionals_at_end();
  verb->callback([options, chosen] { *chosen = [options] { return dry_run(*options); }; });
}

}  // namespace dshang::monitor::cli
