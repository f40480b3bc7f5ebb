#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <sstream>
#include <stdexcept>

#include "core/job/encoding.h"
#include "core/job/input_file.h"
#include "doctor/facts_file.h"
#include "doctor/measure.h"
#include "doctor/output.h"
#include "doctor/resources.h"
#include "monitor/cli/commands.h"

namespace dshang::monitor::cli {
namespace {

using doctor::Area;
using doctor::Facts;

struct Options {
  // Without a config the first word behind -- is taken for it; of_command tells how many stand there.
  std::string config;
  std::vector<std::string> command;
  std::size_t of_command = 0;
  std::string hostfile, checkpoint, model, facts, environment, only;
  bool json = false, rules = false, ssh = false, validate = false;
};

std::vector<Area> chosen_areas(const std::string& only) {
  const std::vector<Area> all = {Area::kConfig,  Area::kHostfile,   Area::kEnv,
                                 Area::kMachine, Area::kCheckpoint, Area::kModel};
  if (only.empty()) return all;
  std::vector<Area> areas;
  std::istringstream names(only);
  for (std::string name; std::getline(names, name, ',');) {
    std::size_t before = areas.size();
    for (Area area : all) {
      if (name == doctor::area_name(area)) areas.push_back(area);
    }
    if (areas.size() == before)
      throw std::runtime_error("--only: '" + name +
                               "' is no area; there are config, hostfile, env, machine, checkpoint, model");
  }
  return areas;
}

// Something other than a folder is there, and may be read or be told why not.
bool is_file(const std::string& path) {
  std::error_code error;
  return !path.empty() && job::is_there(path) && !std::filesystem::is_directory(path, error);
}

void read_inputs(const Options& options, Facts* facts) {
  std::vector<std::string> words = options.command;
  if (!options.config.empty()) words.insert(words.begin(), options.config);
  std::size_t before = words.size() - std::min(options.of_command, words.size());
  if (before > 1) throw std::runtime_error("more than one config is named: " + words[0] + ", " + words[1]);
  if (options.of_command)
    facts->launch = doctor::read_launch({words.begin() + static_cast<std::ptrdiff_t>(before), words.end()});
  if (before == 1) facts->config = doctor::read_config(words[0]);
  std::error_code error;
  const std::string& launched = facts->launch.config;
  if (!facts->config)
    facts->config = is_file(launched) ? doctor::read_config(launched) : doctor::config_in_base64(launched);
  if (before == 1 && is_file(launched) && !std::filesystem::equivalent(words[0], launched, error))
    facts->not_checked.push_back(launched + ", the config of the launch command: " + words[0] +
                                 " was named in its place");
  const std::string* told = doctor::launch_option(facts->launch, {"hostfile", "H"});
  static const std::string kUsual = "/job/hostfile";  // deepspeed's launcher reads it unasked
  if (!told && facts->launch.launcher == "deepspeed" && !facts->told) told = &kUsual;
  bool of_launch = told && is_file(*told);
  if (!options.hostfile.empty()) facts->hostfile = doctor::read_hostfile(options.hostfile);
  if (options.hostfile.empty() && of_launch) facts->hostfile = doctor::read_hostfile(*told);
  if (!options.checkpoint.empty()) facts->checkpoint = doctor::read_checkpoint(options.checkpoint);
  if (facts->checkpoint)
    for (const std::string& one : facts->checkpoint->unread) facts->not_checked.push_back(one);
  if (facts->checkpoint && facts->checkpoint->latest_unread && !facts->checkpoint->latest &&
      facts->checkpoint->unread.empty())
    facts->not_checked.push_back("the tag that " + options.checkpoint +
                                 "'s latest holds: add a line latest=TAG");
  if (!options.model.empty()) facts->model = doctor::read_model(options.model);
}

// The program's own environment is that of a job only when nothing else is told.
void read_told(const Options& options, Facts* facts) {
  bool told = !options.facts.empty();
  if (told) {
    *facts = doctor::assumed_facts();
    bool standard_input = options.facts == "-";
    std::string directory = standard_input ? "" : std::filesystem::path(options.facts).parent_path().string();
    doctor::apply_facts(doctor::read_text(options.facts), standard_input ? "standard input" : options.facts,
                        directory, facts);
  }
  if (!options.environment.empty()) {
    std::string origin = options.environment == "-" ? "standard input" : options.environment;
    std::string text = doctor::read_text(options.environment);
    std::string_view lines = text;
    job::take_mark(&lines);
    facts->environment = doctor::read_environment(std::string(lines), origin);
  } else if (!told) {
    facts->environment = doctor::own_environment();
  }
}

bool has(const std::vector<Area>& areas, Area wanted) {
  for (Area area : areas) {
    if (area == wanted) return true;
  }
  return false;
}

// What the launch command does not tell, or names and is not there.
void note_unread(Facts* facts) {
  const doctor::Launch& launch = facts->launch;
  std::error_code error;
  for (const std::string& one : launch.unread) facts->not_checked.push_back(one);
  if (launch.words.empty()) return;
  if (!facts->config && launch.config.empty())
    facts->not_checked.push_back("the configuration: the launch command names none; give it before --");
  if (launch.script.ends_with(".py") && !std::filesystem::exists(launch.script, error))
    facts->not_checked.push_back("the script " + launch.script + ": it does not exist here");
}

void refuse_two_of_standard_input(const Options& options) {
  const std::pair<const char*, const std::string&> files[] = {
      {"CONFIG", options.config},       {"--hostfile", options.hostfile}, {"--checkpoint", options.checkpoint},
      {"--model", options.model},       {"--facts", options.facts},       {"--env-file", options.environment},
  };
  std::string named;
  int count = 0;
  for (const auto& [name, path] : files) {
    if (path == "-") named += (count++ ? ", " : "") + std::string(name);
  }
  if (count > 1) throw std::runtime_error("standard input can be read once, and is named by " + named);
}

Facts gather(const Options& options, const std::vector<Area>& areas) {
  Facts facts;
  refuse_two_of_standard_input(options);
  read_told(options, &facts);
  read_inputs(options, &facts);
  if (facts.told) return facts;
  doctor::measure_packages(&facts);
  if (has(areas, Area::kMachine) || has(areas, Area::kEnv) || has(areas, Area::kModel))
    doctor::measure_machine(&facts);
  doctor::measure_job(&facts);
  if (has(areas, Area::kEnv)) doctor::measure_network(&facts);
  doctor::measure_places(&facts);
  if (options.validate && has(areas, Area::kConfig)) doctor::ask_deepspeed(&facts);
  if (options.validate && has(areas, Area::kMachine)) doctor::ask_ds_report(&facts);
  if (has(areas, Area::kConfig)) note_unread(&facts);
  if (options.ssh) doctor::measure_nodes(std::filesystem::current_path().string(), &facts);
  if (facts.hostfile && facts.nodes.value_or(1) > 1 && !options.ssh)
    facts.not_checked.push_back("the nodes of " + facts.hostfile->path + ": --ssh looks at each");
  if (options.ssh && !facts.hostfile) facts.not_checked.push_back("the other nodes: --ssh needs a hostfile");
  return facts;
}

int print(const std::string& text, int status) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  return status;
}

int run(const Options& options) {
  if (options.rules) return print(options.json ? doctor::rules_json() : doctor::rules_text(), 0);
  std::vector<Area> areas = chosen_areas(options.only);
  Facts facts = gather(options, areas);
  std::vector<doctor::Finding> findings = doctor::examine(facts, areas);
  bool wrong = !findings.empty() && findings.front().severity <= doctor::Severity::kWrongResult;
  return print(options.json ? doctor::json_of(findings, facts) : doctor::text_of(findings, facts),
               wrong ? 1 : 0);
}

}  // namespace

void add_doctor(CLI::App& app, Run* chosen, int argc, char** argv) {
  auto options = std::make_shared<Options>();
  options->of_command = words_behind_dashes(argc, argv);
  CLI::App* verb = app.add_subcommand("doctor", "what will fail or hang, before the job is started");
  verb->add_option("CONFIG", options->config, "ds_config.json")->check(not_empty());
  verb->add_option("COMMAND", options->command, "after --: the launch command, deepspeed … train.py");
  auto named = [&](const char* name, std::string& value, const char* what) {
    verb->add_option(name, value, what)->check(not_empty());
  };
  named("--hostfile", options->hostfile, "the launcher's hostfile");
  named("--checkpoint", options->checkpoint, "a checkpoint's directory, or a file that lists one");
  named("--model", options->model, "a Hugging Face model's directory, or its config.json");
  named("--facts", options->facts,
        "a JSON object of facts in the place of measured ones; - is standard input");
  named("--env-file", options->environment, "KEY=VALUE lines in the place of the environment");
  named("--only", options->only, "some of config,hostfile,env,machine,checkpoint,model");
  verb->add_flag("--validate", options->validate,
                 "let the installed DeepSpeed check the config too, and run its ds_report");
  verb->add_flag("--ssh", options->ssh, "reach every host of the hostfile, and compare them");
  verb->add_flag("--json", options->json, "findings as JSON");
  verb->add_flag("--rules", options->rules, "list the rules");
  verb->callback([options, chosen] { *chosen = [options] { return run(*options); }; });
}

}  // namespace dshang::monitor::cli
