// The launch command, taken apart.
#include <filesystem>
#include <set>
#include <stdexcept>

#include "doctor/facts_file.h"

namespace dshang::doctor {
namespace {

namespace fs = std::filesystem;

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

// The launcher's own options stand before the script.
void take_options(Launch* launch, std::size_t* at) {
  const auto& words = launch->words;
  while (*at < words.size() && is_option(words[*at])) {
    const std::string& word = words[(*at)++];
    std::string name = option_name(word);
    std::size_t equals = word.find('=');
    if (equals != std::string::npos) {
      launch->options[name] = word.substr(equals + 1);
    } else if (!kFlags.contains(name) && *at < words.size() && !is_option(words[*at])) {
      launch->options[name] = words[(*at)++];
    } else {
      launch->options[name] = "";
    }
  }
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

}  // namespace

Launch read_launch(std::vector<std::string> words) {
  Launch launch;
  launch.words = std::move(words);
  std::size_t at = 0;
  while (at < launch.words.size() && launcher_of(launch.words[at]).empty()) ++at;  // env X=1 deepspeed …
  if (at == launch.words.size()) return launch;
  launch.launcher = launcher_of(launch.words[at++]);
  if (launch.launcher == "accelerate" && at < launch.words.size() && launch.words[at] == "launch") ++at;
  take_options(&launch, &at);
  if (launch.launcher == "python" && launch.options.contains("m")) {
    std::string module = launch.options["m"];
    if (module.find("torch.distributed") == 0) launch.launcher = "torchrun";
    if (module.find("deepspeed") == 0) launch.launcher = "deepspeed";
    if (launch.launcher != "python") take_options(&launch, &at);
  }
  if (at < launch.words.size()) launch.script = launch.words[at];
  std::error_code error;
  if (fs::is_regular_file(launch.script, error)) {
    try {
      launch.script_text = read_text(launch.script);
    } catch (const std::runtime_error&) {
      launch.script_text.clear();  // said among what was not checked
    }
  }
  take_config(&launch, at);
  return launch;
}

}  // namespace dshang::doctor
