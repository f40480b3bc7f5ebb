// The job as the launch command, hostfile, environment and script tell it; versions of installed packages.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <stdexcept>

#include "doctor/command.h"
#include "doctor/hostfile.h"
#include "doctor/lines.h"
#include "doctor/facts_file.h"
#include "doctor/measure.h"
#include "doctor/resources.h"

namespace dshang::doctor {
namespace {

namespace fs = std::filesystem;

void ranks_of_hostfile(Facts* facts) {
  int nodes = 0, ranks = 0, most = 0;
  for (const std::string& line : facts->hostfile->lines) {
    auto entry = entry_of(line);
    if (!entry) continue;
    if (entry->too_many) return;
    ++nodes, ranks += entry->slots, most = std::max(most, entry->slots);
  }
  if (nodes == 0) return;
  facts->nodes = nodes;
  facts->world_size = ranks;
  facts->ranks_per_node = most;
}

void ranks_of_command(Facts* facts) {
  const Launch& launch = facts->launch;
  auto nodes = whole_number(launch_option(launch, {"num_nodes", "nnodes", "num_machines"}));
  auto local = whole_number(launch_option(launch, {"num_gpus", "nproc_per_node", "num_accelerators"}));
  auto all = whole_number(launch_option(launch, {"num_processes"}));  // accelerate counts all
  if (nodes) facts->nodes = nodes;
  if (local) facts->ranks_per_node = local;
  if (local) facts->world_size = *local * facts->nodes.value_or(1);
  if (all) facts->world_size = all;
}

// srun and mpirun start as many tasks as they are told; each is a rank where it is python.
void ranks_of_tasks(Facts* facts) {
  const Launch& launch = facts->launch;
  if (launch.below != "python") return;
  auto option = [&](std::initializer_list<const char*> names) {
    return whole_number(launch_option(launch, names));
  };
  if (launch.launcher == "mpirun") {
    auto all = option({"np", "n", "c"});
    if (!all || all == facts->world_size) return;
    facts->world_size = all;
    facts->nodes.reset();  // which of the hostfile's hosts get some is mpirun's choice
    facts->ranks_per_node.reset();
    return;
  }
  auto nodes = option({"N", "nodes"}), each = option({"ntasks_per_node"}), all = option({"n", "ntasks"});
  if (!nodes) nodes = whole_number(facts->env("SLURM_NNODES"));
  bool job_tells = facts->env("SLURM_NTASKS") || facts->env("SLURM_NTASKS_PER_NODE");
  if (!all && nodes && (each || !job_tells)) all = *nodes * each.value_or(1);
  if (!all) return;
  facts->world_size = all;
  if (nodes) facts->nodes = nodes;
  if (nodes.value_or(0) > 0 && *all % *nodes == 0) facts->ranks_per_node = *all / *nodes;
}

void ranks_of_environment(Facts* facts) {
  if (!facts->world_size) facts->world_size = whole_number(facts->env("WORLD_SIZE"));
  if (!facts->nodes) facts->nodes = whole_number(facts->env("SLURM_NNODES"));
  if (!facts->world_size) facts->world_size = whole_number(facts->env("SLURM_NTASKS"));
}

// Launchers that write the variables of a rank themselves.
bool sets_variables(const std::string& launcher) {
  return launcher == "deepspeed" || launcher == "torchrun" || launcher == "accelerate";
}

void ranks_of_deepspeed(const Resources& started, Facts* facts) {
  if (!started.refused.empty()) {
    facts->not_checked.push_back("the number of ranks: " + started.refused);
    return;
  }
  std::size_t ranks = 0, most = 0;
  for (const auto& [host, slots] : started.hosts) ranks += slots.size(), most = std::max(most, slots.size());
  facts->nodes = static_cast<int>(started.hosts.size());
  facts->world_size = static_cast<int>(ranks);
  facts->ranks_per_node = static_cast<int>(most);
}

// The script's own words tell who calls initialize.
void trainer_of_script(Facts* facts) {
  const std::string& text = facts->launch.script_text;
  if (text.empty() || facts->trainer != Trainer::kUnknown) return;
  static const std::regex hf("^\\s*(from|import)\\s+(transformers|accelerate|trl)\\b");
  static const std::regex engine("\\bdeepspeed\\.initialize\\s*\\(");
  bool initializes = any_line(text, engine);
  if (initializes) {
    facts->trainer = Trainer::kPlain;
  } else if (any_line(text, hf) &&
             (text.find("Trainer") != std::string::npos || text.find("ccelerat") != std::string::npos)) {
    facts->trainer = Trainer::kHf;
  }
}

// TrainingArguments in the launch command, where transformers' own parser reads them.  What it does not
// name is not known: a script may set other defaults.
void arguments_of_trainer(Facts* facts) {
  const Launch& launch = facts->launch;
  static const std::regex parser("\\b(HfArgumentParser|TrlParser)\\b");
  if (facts->trainer != Trainer::kHf || !any_line(launch.script_text, parser)) return;
  auto at = std::find(launch.words.begin(), launch.words.end(), launch.script);
  Json arguments = Json::object();
  for (; at != launch.words.end(); ++at) {
    if (!at->starts_with("--")) continue;
    std::size_t equals = at->find('=');
    std::string name = at->substr(2, equals == std::string::npos ? equals : equals - 2);
    std::replace(name.begin(), name.end(), '-', '_');
    bool apart = equals == std::string::npos && at + 1 != launch.words.end() && !(at + 1)->starts_with("--");
    bool alone = equals == std::string::npos && !apart;
    std::string text = apart ? *(at + 1) : alone ? "" : at->substr(equals + 1);
    Json value = Json::parse(text, nullptr, false);
    if (value.is_number()) arguments[name] = value;
    if (name != "fp16" && name != "bf16") continue;
    if (alone || truth(text)) arguments[name] = alone || *truth(text);
  }
  if (facts->hf.is_null() && !arguments.empty()) facts->hf = arguments;
}

void names_of_deepspeed_env(Facts* facts) {
  const std::string* home = facts->env("HOME");
  for (const std::string& folder : {home ? *home : std::string(), std::string(".")}) {
    std::error_code error;
    fs::path path = fs::path(folder) / ".deepspeed_env";
    if (folder.empty() || !fs::is_regular_file(path, error)) continue;
    try {
      for (const auto& [name, value] : read_environment(read_text(path.string()), path.string()))
        facts->exported_names.push_back(name);
    } catch (const std::runtime_error& failed) {
      facts->not_checked.push_back(failed.what());
    }
  }
}

// Folders of packages that belong to an interpreter's path: bin/python -> lib/python3.*/site-packages.
std::vector<fs::path> package_folders(const std::string& program) {
  std::vector<fs::path> folders;
  std::error_code error;
  fs::path path = fs::absolute(program, error);
  for (const fs::path& binary : {path, fs::canonical(path, error)}) {
    if (binary.empty()) continue;
    for (const char* lib : {"lib", "lib64"}) {
      fs::directory_iterator all(binary.parent_path().parent_path() / lib, error), end;
      for (; !error && all != end; all.increment(error)) {
        std::string name = all->path().filename().string();
        if (!name.starts_with("python3")) continue;
        folders.push_back(all->path() / "site-packages");
        folders.push_back(all->path() / "dist-packages");
      }
    }
  }
  return folders;
}

std::string version_in(const fs::path& folder, const std::string& package) {
  std::error_code error;
  fs::directory_iterator all(folder, error), end;
  for (; !error && all != end; all.increment(error)) {
    std::string name = all->path().filename().string();
    if (name.starts_with(package + "-") && name.ends_with(".dist-info"))
      return name.substr(package.size() + 1,
                         name.size() - package.size() - 1 - std::string(".dist-info").size());
  }
  return "";
}

// torch/version.py: cuda: Optional[str] = '13.0'
std::string cuda_of(const fs::path& folder) {
  std::ifstream file(folder / "torch" / "version.py");
  static const std::regex cuda("^cuda\\b[^=]*=\\s*'([0-9.]+)'");
  for (std::string line; std::getline(file, line);) {
    std::smatch parts;
    if (std::regex_search(line, parts, cuda)) return parts[1];
  }
  return "";
}

// deepspeed/git_version_info_installed.py, written when it was installed.
void ops_of(const fs::path& folder, Machine* machine) {
  std::ifstream file(folder / "deepspeed" / "git_version_info_installed.py");
  static const std::regex op("'(\\w+)': (True|False)"), built("'version': '([0-9.]+)");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("installed_ops")) {
      for (std::sregex_iterator at(line.begin(), line.end(), op), end; at != end; ++at)
        if ((*at)[2] == "True") machine->ops[(*at)[1]] = {true, true};
    }
    std::smatch parts;
    if (line.starts_with("torch_info") && std::regex_search(line, parts, built))
      machine->ops_built_with = parts[1];
  }
}

std::string interpreter(const Facts& facts) {
  std::string first = facts.launch.words.empty() ? "" : on_path(facts.launch.words.front());
  if (!first.empty() && !facts.launch.launcher.empty()) return first;
  for (const char* name : {"deepspeed", "python", "python3"}) {
    std::string path = on_path(name);
    if (!path.empty()) return path;
  }
  return "";
}

}  // namespace

// A launcher's script lies beside its interpreter.
std::string python_of(const Facts& facts) {
  fs::path program = interpreter(facts);
  if (program.empty() || program.filename().string().starts_with("python")) return program.string();
  return on_path((program.parent_path() / "python").string());
}

void measure_packages(Facts* facts) {
  std::string program = interpreter(*facts);
  for (const fs::path& folder : program.empty() ? std::vector<fs::path>() : package_folders(program)) {
    auto fill = [&](std::string* version, const char* package) {
      if (version->empty()) *version = version_in(folder, package);
    };
    bool new_torch = facts->torch.empty(), new_deepspeed = facts->deepspeed.empty();
    fill(&facts->deepspeed, "deepspeed");
    fill(&facts->torch, "torch");
    fill(&facts->transformers, "transformers");
    if (new_torch && !facts->torch.empty()) facts->torch_cuda = cuda_of(folder);
    if (new_deepspeed && !facts->deepspeed.empty()) ops_of(folder, &facts->machine);
  }
  if (facts->deepspeed.empty())
    facts->not_checked.push_back("the version of DeepSpeed: none is installed for " +
                                 (program.empty() ? std::string("python") : program) +
                                 "; the rules of 0.19.8 are used");
}

void measure_job(Facts* facts) {
  auto started = resources_of(*facts);
  if (started) {
    ranks_of_deepspeed(*started, facts);
  } else if (facts->launch.launcher != "deepspeed") {
    if (facts->hostfile) ranks_of_hostfile(facts);
    ranks_of_command(facts);
    ranks_of_tasks(facts);
  }
  if (!sets_variables(facts->launch.launcher) && !sets_variables(facts->launch.below))
    ranks_of_environment(facts);
  if (facts->world_size.value_or(1) < 1) facts->world_size.reset();
  trainer_of_script(facts);
  arguments_of_trainer(facts);
  names_of_deepspeed_env(facts);
  if (facts->config && !facts->world_size && (!started || started->refused.empty()))
    facts->not_checked.push_back("the number of ranks: " +
                                 (facts->hostfile ? facts->hostfile->path + " does not tell it"
                                                  : "give the launch command after --, or --hostfile"));
}

}  // namespace dshang::doctor
