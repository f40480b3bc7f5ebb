#include <cstdio>
#include <filesystem>
#include <memory>
#include <stdexcept>

#include "core/job/version.h"
#include "doctor/facts_file.h"
#include "doctor/measure.h"
#include "doctor/output.h"
#include "issue/machine.h"
#include "issue/shell_words.h"
#include "monitor/cli/commands.h"
#include "monitor/cli/issue_job.h"
#include "monitor/cli/issue_output.h"

namespace dshang::monitor::cli {
namespace {

namespace fs = std::filesystem;

struct Options {
  // Without DIR the first word behind -- is taken for it; of_command tells how many stand there.
  std::string directory;
  std::vector<std::string> command;
  std::size_t of_command = 0;
  std::string config, output;
  std::vector<std::string> logs;
};

// The words of the command line, taken apart: DIR before --, the launch command behind it.
void read_words(const Options& options, std::string* directory, doctor::Facts* facts) {
  std::vector<std::string> words = options.command;
  if (!options.directory.empty()) words.insert(words.begin(), options.directory);
  std::size_t before = words.size() - std::min(options.of_command, words.size());
  if (before > 1)
    throw std::runtime_error("issue: more than one directory is named: " + words[0] + ", " + words[1]);
  if (before == 1) *directory = words[0];
  if (options.of_command)
    facts->launch = doctor::read_launch({words.begin() + static_cast<std::ptrdiff_t>(before), words.end()});
}

std::optional<issue::RecordedJob> job_of(const std::string& named, issue::Material* material) {
  if (!named.empty()) return recorded_job(named);
  std::string found = newest_job();
  if (found.empty()) return std::nullopt;
  try {
    return recorded_job(found);
  } catch (const std::runtime_error& error) {  // nobody asked for this one
    material->missing.push_back(std::string("dshang's report: ") + error.what());
    return std::nullopt;
  }
}

void measure(const Options& options, const issue::RecordedJob* job, doctor::Facts* facts) {
  std::error_code error;
  facts->environment = doctor::own_environment();
  std::string command = job && facts->launch.words.empty() ? job->fact("program.command") : "";
  if (!command.empty()) {
    doctor::Launch of_job = doctor::read_launch(issue::words_of_command(command));
    facts->launch.script = of_job.script;
    facts->launch.script_text = of_job.script_text;
    facts->launch.config = of_job.config;
  }
  if (!options.config.empty()) facts->config = doctor::read_config(options.config);
  if (!facts->config && fs::is_regular_file(facts->launch.config, error))
    facts->config = doctor::read_config(facts->launch.config);
  doctor::measure_packages(facts);
  doctor::measure_machine(facts);
  doctor::measure_job(facts);
  doctor::measure_network(facts);
  if (job && job->world_size > 0) facts->world_size = job->world_size, facts->nodes = job->nodes;
}

// What the doctor says of configuration, environment and machine as they are now.
void add_doctor(doctor::Facts facts, issue::Material* material) {
  facts.machine.busy_ports.clear();  // the job itself may still have its port
  doctor::measure_places(&facts);
  auto findings = doctor::examine(facts, {doctor::Area::kConfig, doctor::Area::kEnv, doctor::Area::kMachine});
  if (findings.empty()) return;
  material->sections.push_back({"What dshang doctor says", "Of this machine and shell, now.", "doctor.txt",
                                doctor::text_of(findings, facts), "text", false});
}

std::string head_of(const issue::RecordedJob* job) {
  std::string text =
      "*What happened, in a sentence:* …\n\n*What was expected:* …\n\nMade by `dshang issue` " +
      std::string(job::kVersion);
  if (!job) return text + ".";
  const std::string& deepspeed = job->fact("version.deepspeed");
  const std::string& torch = job->fact("version.torch");
  text += " from `" + job->directory + "`";
  if (!deepspeed.empty()) text += "; DeepSpeed " + deepspeed;
  if (!torch.empty()) text += "; torch " + torch;
  return text + ".";
}

int write(IssueOutput* output, const issue::Bundle& bundle) {
  std::string why = output->write(bundle);
  const char* name = output->name().c_str();
  std::printf("%s.md: to be pasted\n", name);
  if (why.empty()) std::printf("%s.tar.zst: to be attached, everything whole\n", name);
  for (const std::string& one : bundle.missing) std::printf("not in it: %s\n", one.c_str());
  for (const auto& one : bundle.redacted)
    std::printf("redacted: %s, %d in %s\n", one.kind.c_str(), one.count, one.where.c_str());
  std::printf("Read it before you publish it: names of hosts, users and paths are in it.\n");
  if (why.empty()) return 0;
  std::fprintf(stderr, "dshang: issue: no archive: %s; its files lie in %s/\n", why.c_str(), name);
  return 1;
}

int run(const Options& options) {
  IssueOutput output(options.output);
  std::string directory;
  doctor::Facts facts;
  issue::Material material;
  issue::Redactor redactor;
  read_words(options, &directory, &facts);
  const std::optional<issue::RecordedJob> recorded = job_of(directory, &material);
  const issue::RecordedJob* job = recorded ? &*recorded : nullptr;
  measure(options, job, &facts);
  material.head = head_of(job);
  issue::add_job(job, &facts, options.logs, &material);
  add_doctor(facts, &material);
  issue::add_environment(job, facts, &redactor, &material);
  issue::add_machine(facts, &material);
  if (job) material.attached.push_back({"report.json", job->report_json});
  return write(&output, issue::bundle_of(material, &redactor));
}

}  // namespace

void add_issue(CLI::App& app, Run* chosen, int argc, char** argv) {
  auto options = std::make_shared<Options>();
  options->of_command = words_behind_dashes(argc, argv);
  CLI::App* verb =
      app.add_subcommand("issue", "a bug report: a text to paste and an archive, without secrets");
  verb->add_option("DIR", options->directory,
                   "DSHANG_DIR of the job; default: the newest job in this directory")
      ->check(not_empty());
  verb->add_option("COMMAND", options->command, "after --: the launch command, deepspeed … train.py");
  verb->add_option("--config", options->config, "ds_config.json; default: the job's own")->check(not_empty());
  verb->add_option("--log", options->logs, "the job's output, for its tracebacks; may be given again")
      ->allow_extra_args(false)
      ->check(not_empty());
  verb->add_option("--output", options->output, "writes NAME.md and NAME.tar.zst")
      ->type_name("NAME")
      ->check(not_empty());
  verb->callback([options, chosen] { *chosen = [options] { return run(*options); }; });
}

}  // namespace dshang::monitor::cli
