// The launch command, taken apart.
#include <cctype>
#include <filesystem>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>

#include "core/job/encoding.h"
#include "core/job/input_file.h"
#include "doctor/facts_file.h"

namespace dshang::doctor {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestLineOfYaml = 4096;

// Options without a value, of deepspeed (launcher/runner.py) and torchrun.
const std::set<std::string> kFlags = {"force_multi",
                                      "save_pid",
                                      "no_python",
                                      "no_local_rank",
                                      "enable_each_rank_log_off",
                                      "no_ssh",
                                      "no_ssh_check",
                                      "module",
                                      "bind_cores_to_rank",
                                      "standalone",
                                      "multi_gpu",
                                      "use_deepspeed",
                                      "u",
                                      "B",
                                      "O",
                                      "E",
                                      "s",
                                      "I",
                                      "mixed_off",
                                      "quiet",
                                      "debug",
                                      "elastic_training"};

std::string base_name(const std::string& path) { return fs::path(path).filename().string(); }

std::string launcher_of(const std::string& word) {
  std::string name = base_name(word);
  if (name == "deepspeed" || name == "ds") return "deepspeed";
  if (name == "torchrun" || name == "accelerate" || name == "srun" || name == "mpirun") return name;
  if (name == "mpiexec") return "mpirun";
  return name.starts_with("python") ? "python" : "";
}

std::string option_name(const std::string& word) {
  std::string name = word.substr(word.find_first_not_of('-'));
  name = name.substr(0, name.find('='));
  for (char& c : name) c = c == '-' ? '_' : c;
  return name;
}

bool is_option(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && word.find_first_not_of('-') != std::string::npos;
}

using Options = std::map<std::string, std::string>;

// Those of srun and mpirun, which have many: a word that starts a program is no value of theirs.
bool starts_ranks(const std::string& launcher) { return launcher == "srun" || launcher == "mpirun"; }

bool has_value(const Launch& launch, const std::string& name, std::size_t next) {
  if (kFlags.contains(name) || next >= launch.words.size() || is_option(launch.words[next])) return false;
  return !starts_ranks(launch.launcher) || launcher_of(launch.words[next]).empty();
}

// The launcher's own options stand before the script.
Options take_options(const Launch& launch, std::size_t* at) {
  Options options;
  const auto& words = launch.words;
  while (*at < words.size() && is_option(words[*at])) {
    const std::string& word = words[(*at)++];
    std::string name = option_name(word);
    std::size_t equals = word.find('=');
    bool attached = starts_ranks(launch.launcher) && word.size() > 2 && word[1] != '-' &&
                    std::isdigit(static_cast<unsigned char>(word[2]));  // -N2
    if (attached) {
      options[word.substr(1, 1)] = word.substr(2);
    } else if (equals != std::string::npos) {
      options[name] = word.substr(equals + 1);
    } else if (has_value(launch, name, *at)) {
      options[name] = words[(*at)++];
      if (name == "mca" && *at < words.size()) ++*at;  // a name and a value
    } else {
      options[name] = "";
    }
  }
  return options;
}

// The program that the words start, with its options: a launcher, or one below srun and mpirun.
std::string take_program(Launch* launch, std::size_t* at) {
  std::string program = launcher_of(launch->words[(*at)++]);
  if (launch->launcher.empty()) launch->launcher = program;
  if (program == "accelerate" && *at < launch->words.size() && launch->words[*at] == "launch") ++*at;
  Options options = take_options(*launch, at);
  if (program == "python" && options.contains("m")) {
    std::string module = options["m"];
    if (module.find("torch.distributed") == 0) program = "torchrun";
    if (module.find("deepspeed") == 0) program = "deepspeed";
    if (module.find("accelerate.commands.launch") == 0) program = "accelerate";
    if (program != "python") options.merge(take_options(*launch, at));
  }
  launch->options.merge(options);
  return program;
}

void take_config(Launch* launch, std::size_t at) {
  for (; at < launch->words.size(); ++at) {
    const std::string& word = launch->words[at];
    if (!is_option(word)) continue;
    std::string name = option_name(word);
    if (name != "deepspeed" && name != "deepspeed_config" && name != "ds_config") continue;
    std::size_t equals = word.find('=');
    bool next =
        equals == std::string::npos && at + 1 < launch->words.size() && !is_option(launch->words[at + 1]);
    if (equals != std::string::npos) launch->config = word.substr(equals + 1);
    if (next) launch->config = launch->words[at + 1];
  }
}

// Of a file that the command names.  What is there and cannot be read is noted.
bool read_named(const std::string& path, std::string* text, Launch* launch) {
  std::error_code error;
  if (path.empty() || fs::is_directory(path, error) || !job::is_there(path)) return false;
  try {
    *text = read_text(path);
  } catch (const std::runtime_error& failed) {
    launch->unread.push_back(failed.what());
    return false;
  }
  return true;
}

// accelerate's --config_file: what it says and the command does not.
void take_options_of_accelerate(Launch* launch) {
  bool accelerate = launch->launcher == "accelerate" || launch->below == "accelerate";
  auto file = launch->options.find("config_file");
  if (!accelerate || file == launch->options.end()) return;
  static const std::regex entry(
      "\\s*(deepspeed_config_file|num_processes|num_machines):\\s*['\"]?([^'\"#]*[^'\"#\\s]).*");
  std::string text;
  if (!read_named(file->second, &text, launch)) return;
  std::string_view content = text;
  job::take_mark(&content);
  std::istringstream lines{std::string(content)};
  for (std::string line; std::getline(lines, line);) {
    std::smatch parts;
    if (line.size() < kLongestLineOfYaml && std::regex_match(line, parts, entry) && parts[2] != "null")
      launch->options.emplace(parts[1], parts[2]);
  }
}

}  // namespace

Launch read_launch(std::vector<std::string> words) {
  Launch launch;
  launch.words = std::move(words);
  std::size_t at = 0;
  while (at < launch.words.size() && launcher_of(launch.words[at]).empty()) ++at;  // env X=1 deepspeed …
  if (at == launch.words.size()) return launch;
  launch.launcher = take_program(&launch, &at);
  bool below = starts_ranks(launch.launcher) && at < launch.words.size();
  if (below && !launcher_of(launch.words[at]).empty()) launch.below = take_program(&launch, &at);
  take_options_of_accelerate(&launch);
  if (at < launch.words.size()) launch.script = launch.words[at];
  read_named(launch.script, &launch.script_text, &launch);
  for (const char* name : {"deepspeed_config", "deepspeed_config_file"}) {
    if (launch.options.contains(name)) launch.config = launch.options[name];
  }
  take_config(&launch, at);
  return launch;
}

}  // namespace dshang::doctor
