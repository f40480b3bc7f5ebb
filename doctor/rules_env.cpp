// The environment: variables that do nothing, or not what is meant.
#include <algorithm>
#include <set>
#include <sstream>

#include "doctor/env_names.h"
#include "doctor/nodes.h"
#include "doctor/resources.h"
#include "doctor/rule.h"

namespace dshang::doctor {
namespace {

constexpr double kLongTimeout = 1440;  // minutes, of DEEPSPEED_TIMEOUT: a day

void debug_level(const Facts& facts, Hits& hits) {
  const std::string* level = facts.env("NCCL_DEBUG");
  if (!level || level->empty()) return;
  for (const char* known : {"none", "version", "warn", "info", "abort", "trace"}) {
    if (lower(*level) == known) return;
  }
  hits.add("NCCL_DEBUG", "NCCL_DEBUG=" + *level + " is no level: NCCL prints nothing more for it");
}

void no_launcher(const Facts& facts, Hits& hits) {
  for (const char* other : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "AZUREML_EXPERIMENT_ID", "SM_CURRENT_HOST"}) {
    if (facts.env(other)) return;
  }
  const std::string& launcher = facts.launch.launcher;
  if (!launcher.empty() && launcher != "python") return;  // it sets them for its ranks, or the script does
  const char* needed[] = {"RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"};
  std::string missing, present;
  for (const char* name : needed) {
    std::string* list = facts.env(name) ? &present : &missing;
    *list += (list->empty() ? "" : ", ") + std::string(name);
  }
  bool of_a_rank = facts.env("RANK") || facts.env("LOCAL_RANK") || facts.env("WORLD_SIZE");
  if (of_a_rank && !missing.empty())
    return hits.add(
        missing, "of the variables that a launcher sets, " + missing + " are missing (set: " + present + ")");
  bool bare = launcher == "python" && !facts.launch.script.empty();
  bool alone = facts.launch.script_text.find("deepspeed.initialize") != std::string::npos;
  if (bare && alone && facts.trainer != Trainer::kHf && !missing.empty())
    hits.add(facts.launch.script, "the script calls deepspeed.initialize and is started by python alone");
}

void unread(const Facts& facts, Hits& hits) {
  for (const auto& [name, value] : facts.environment) {
    if (name == "NCCL_TIMEOUT" || name == "TORCH_NCCL_TIMEOUT") {
      hits.add(name, "nobody reads " + name,
               "For the time-out: DEEPSPEED_TIMEOUT (minutes), init_process_group(timeout=…), or ddp_timeout "
               "(seconds) of the Trainer.");
    } else if (name == "NCCL_DEBUG_LEVEL") {
      hits.add(name, "nobody reads " + name, "Use NCCL_DEBUG=INFO.");
    } else if (std::string meant = misspelt_variable(name); !meant.empty()) {
      hits.add(name, "nobody reads " + name + "; did you mean " + meant + "?", "Correct the name.");
    }
  }
}

void old_names(const Facts& facts, Hits& hits) {
  for (const char* name :
       {"NCCL_ASYNC_ERROR_HANDLING", "NCCL_BLOCKING_WAIT", "NCCL_DESYNC_DEBUG", "NCCL_ENABLE_TIMING"}) {
    if (facts.env(name) && !older(facts.torch, "2.2.0"))
      hits.add(name, std::string(name) + " is the old name of TORCH_" + name);
  }
}

std::vector<std::string> split(const std::string& text, char mark) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, mark);) parts.push_back(part);
  if (text.ends_with(mark)) parts.emplace_back();
  return parts;
}

void devices(const Facts& facts, Hits& hits) {
  constexpr const char* kName = "CUDA_VISIBLE_DEVICES";
  const std::string* list = facts.env(kName);
  if (!list || list->empty()) return;
  bool ranks_by_launcher = facts.launch.launcher == "deepspeed";
  auto started = resources_of(facts);
  if (started && !started->of_variable) return;  // the launcher writes another list
  std::set<std::string> seen;
  for (std::string item : split(*list, ',')) {
    item.erase(std::remove(item.begin(), item.end(), ' '), item.end());
    if (item.empty())
      hits.add(kName, std::string(kName) + "=" + *list + " has an empty item: what follows is not used");
    else if (!seen.insert(item).second)
      hits.add(kName, std::string(kName) + "=" + *list + " names device " + item + " twice");
  }
  if (ranks_by_launcher || !hits.all().empty()) return;
  if (facts.ranks_per_node && static_cast<int>(seen.size()) < *facts.ranks_per_node) {
    hits.add(kName, std::string(kName) + "=" + *list + " names " + std::to_string(seen.size()) +
                        " devices for " + std::to_string(*facts.ranks_per_node) + " ranks on a node");
  }
}

std::string list_of(const std::set<int>& numbers) {
  std::string text;
  for (int number : numbers) text += (text.empty() ? "" : ",") + std::to_string(number);
  return text;
}

// The launcher hands its own list to each node: it does no harm where that is the same.
void devices_ignored(const Facts& facts, Hits& hits) {
  constexpr const char* kName = "CUDA_VISIBLE_DEVICES";
  const std::string* list = facts.env(kName);
  auto started = resources_of(facts);
  if (!list || list->empty() || !started || started->of_variable || started->hosts.empty()) return;
  auto wanted = device_numbers(*list);
  for (const auto& [host, slots] : started->hosts) {
    if (wanted == slots) return;
  }
  std::string beside = "the hostfile";
  for (const char* name : {"include", "exclude", "num_gpus", "num_nodes"}) {
    if (facts.launch.options.contains(name)) beside = "--" + std::string(name);
  }
  const auto& [host, slots] = started->hosts.front();
  std::string value = shortened(*list);
  std::string fix = facts.hostfile ? "Name hosts and devices with --include " + host + ":" +
                                         (wanted ? value : "0,1") + " in the place of the variable."
                    : wanted ? "Use --include localhost:" + value + " alone, or the variable alone."
                             : "Use the variable with torchrun, or --include localhost:0,1 alone.";
  hits.add(kName,
           std::string(kName) + "=" + value + " is set beside " + beside +
               ": the launcher ignores it and uses " + shortened(list_of(slots)) + " on " + host,
           fix, wanted ? std::nullopt : std::optional(Severity::kRisk));
}

void timeout(const Facts& facts, Hits& hits) {
  constexpr const char* kName = "DEEPSPEED_TIMEOUT";
  const std::string* text = facts.env(kName);
  if (!text) return;
  std::string said = std::string(kName) + "=" + *text;
  if (text->empty() || text->find_first_not_of("0123456789") != std::string::npos || text->size() > 9)
    return hits.add(kName, said + " is no whole number of minutes", "", Severity::kWillFail);
  int minutes = std::stoi(*text);
  if (minutes == 0) return hits.add(kName, said + ": every wait fails at once", "", Severity::kWillFail);
  if (minutes >= kLongTimeout)
    hits.add(kName, said + " are minutes, " + std::to_string(minutes / 60) + " hours; were seconds meant?");
}

// Variables that ranks read and that are set for a job.
bool for_ranks(const std::string& name) {
  if (name == "LD_PRELOAD" || name == "DEEPSPEED_TIMEOUT") return true;
  for (const char* prefix :
       {"TORCH_", "GLOO_", "DSHANG_", "PYTORCH_", "CUDA_LAUNCH", "DS_", "HF_", "OMP_NUM", "FI_"}) {
    if (name.starts_with(prefix)) return true;
  }
  return false;
}

// Open MPI: -x NAME, -x NAME=value.  MPICH, which hands on everything, has neither -x nor --mca.
std::optional<std::vector<std::string>> exported_by_mpirun(const Launch& launch) {
  std::vector<std::string> names;
  bool open_mpi = false;
  for (std::size_t i = 0; i + 1 < launch.words.size() && launch.words[i] != launch.script; ++i) {
    const std::string& word = launch.words[i];
    open_mpi = open_mpi || word == "-x" || word == "--mca" || word == "-mca";
    if (word == "-x") names.push_back(launch.words[i + 1].substr(0, launch.words[i + 1].find('=')));
  }
  return open_mpi ? std::optional(names) : std::nullopt;
}

std::optional<std::vector<std::string>> exported_by_srun(const Launch& launch) {
  auto option = launch.options.find("export");
  if (option == launch.options.end()) return std::nullopt;
  std::vector<std::string> names;
  for (const std::string& item : split(option->second, ',')) {
    if (item == "ALL") return std::nullopt;
    names.push_back(item.substr(0, item.find('=')));
  }
  return names;
}

// Of a launcher that hands on only what it is told.
void left_behind(const Facts& facts, const std::vector<std::string>& exported, const std::string& fix,
                 Hits& hits) {
  for (const auto& [name, value] : facts.environment) {
    if ((for_ranks(name) || name.starts_with("NCCL_")) && !among(name, exported))
      hits.add(name, name + " is set here and does not reach the ranks", fix);
  }
}

void not_exported(const Facts& facts, Hits& hits) {
  const Launch& launch = facts.launch;
  if (launch.launcher == "srun") {
    if (auto names = exported_by_srun(launch))
      left_behind(facts, *names, "Leave srun's --export out, or begin its list with ALL.", hits);
    return;
  }
  if (facts.nodes.value_or(1) < 2) return;
  if (launch.launcher == "mpirun") {
    if (auto names = exported_by_mpirun(launch))
      left_behind(facts, *names, "Add -x NAME to mpirun for each.", hits);
    return;
  }
  bool others_export = !launch.options.contains("launcher");  // MPI and Slurm launchers have their own ways
  if (launch.launcher != "deepspeed" || !others_export) return;
  for (const auto& [name, value] : facts.environment) {
    if (for_ranks(name) && !among(name, facts.exported_names))
      hits.add(name, name + " is set here and does not reach the other nodes");
  }
}

void no_such_device(const Facts& facts, Hits& hits) {
  if (!facts.machine.gpus) return;
  int gpus = *facts.machine.gpus;
  const std::string* rank = facts.env("LOCAL_RANK");
  bool number = rank && !rank->empty() && rank->find_first_not_of("0123456789") == std::string::npos &&
                rank->size() < 6;
  int local = number ? std::stoi(*rank) : facts.local_rank.value_or(-1);
  std::string there = "there are " + std::to_string(gpus) + " GPUs";
  if (local >= gpus) hits.add("LOCAL_RANK", "LOCAL_RANK is " + std::to_string(local) + ", " + there);
  if (gpus > 0 && facts.ranks_per_node && *facts.ranks_per_node > gpus)
    hits.add(facts.hostfile ? facts.hostfile->path : "launch command",
             std::to_string(*facts.ranks_per_node) + " ranks are to start on a node, " + there);
}

void config_missing(const Facts& facts, Hits& hits) {
  for (const Node& node : facts.other_nodes) {
    auto there = node.facts.find("ds_config");
    if (there != node.facts.end() && there->second == kNone && facts.config)
      hits.add(node.name,
               facts.config->path + " does not exist on " + node.name + ", from the folder of this command");
  }
  const std::string& named = facts.launch.config;
  if (named.empty() || facts.config) return;
  hits.add(named, "the launch command names the config " + named + ", which does not exist here");
}

}  // namespace

const Rules& env_rules() {
  static const Rules rules = {
      {"12.3-5", Area::kConfig, Severity::kWillFail,
       "--deepspeed, --deepspeed_config of the launch command; the file on each node (--ssh)", "no such file",
       "a text that is no file is taken for base64", "Give an absolute path that exists on every node.",
       "binascii.Error: Invalid base64-encoded string", config_missing},
      {"12.1-3", Area::kEnv, Severity::kAdvice, "NCCL_DEBUG", "no level of NCCL's", "the level is misspelt",
       "NCCL_DEBUG=INFO NCCL_DEBUG_FILE=/tmp/nccl.%h.%p.log (a file a process).",
       "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html", debug_level},
      {"12.3-6", Area::kEnv, Severity::kWillFail,
       "RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT, the launch command",
       "only some are set and no launcher is named, or the script is started by python alone",
       "a launcher sets the five; without them DeepSpeed looks for MPI",
       "Start with `deepspeed train.py` or `torchrun --nproc-per-node=N train.py`; do not install mpi4py.",
       "No module named 'mpi4py'; environment variable RANK expected, but not set", no_launcher},
      {"X-15", Area::kEnv, Severity::kAdvice, "variables of NCCL and torch", "a name that nobody reads",
       "the name is wrong and silently ignored", "Correct the name.",
       "strings of NCCL 2.30.7 and torch 2.14.1; "
       "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html",
       unread},
      {"X-47", Area::kEnv, Severity::kAdvice,
       "NCCL_ASYNC_ERROR_HANDLING, NCCL_BLOCKING_WAIT, NCCL_DESYNC_DEBUG, NCCL_ENABLE_TIMING",
       "one is set, torch 2.2 or newer", "renamed in torch 2.2", "Use the name with TORCH_ before it.",
       "Environment variable NCCL_… is deprecated; use TORCH_NCCL_… instead", old_names},
      {"X-19", Area::kEnv, Severity::kWillFail, "CUDA_VISIBLE_DEVICES, ranks a node",
       "a device stands twice, an item is empty, or there are fewer devices than ranks",
       "two ranks get one GPU",
       "Name each device once, as many as ranks; torch.cuda.set_device(int(os.environ[\"LOCAL_RANK\"])) "
       "before init.",
       "Duplicate GPU detected; Multiple Ranks are using the same GPU/Partition", devices},
      {"X-33", Area::kEnv, Severity::kWillFail, "LOCAL_RANK, slots, --num_gpus, number of GPUs",
       "more ranks than GPUs", "a rank asks for a device that is not there",
       "Correct slots, --num_gpus or CUDA_VISIBLE_DEVICES.", "CUDA error: invalid device ordinal",
       no_such_device},
      {"X-44", Area::kEnv, Severity::kWrongResult, "CUDA_VISIBLE_DEVICES, options of the deepspeed launcher",
       "it is set beside --include, --exclude, --num_gpus, --num_nodes or --hostfile, and names other "
       "devices",
       "the launcher writes a list of its own", "Use --include localhost:2,3 alone, or the variable alone.",
       "Detected VISIBLE_DEVICES=… but ignoring it", devices_ignored},
      {"X-46", Area::kEnv, Severity::kRisk, "DEEPSPEED_TIMEOUT",
       "no positive whole number, or a day and more",
       "it counts minutes (default 10 in 0.19.8, 30 up to 0.19.5)",
       "Give minutes, e.g. DEEPSPEED_TIMEOUT=120.", "deepspeed/constants.py; deepspeedai/DeepSpeed#8253",
       timeout},
      {"D-01", Area::kEnv, Severity::kRisk,
       "variables for ranks, several nodes, the launcher: deepspeed and .deepspeed_env, mpirun -x, srun "
       "--export",
       "a variable is set here only",
       "deepspeed hands on names that begin with NCCL, PYTHON, MLFLOW, MV2, UCX, and the lines of "
       ".deepspeed_env; Open MPI and srun --export what they are told",
       "Write NAME=value into .deepspeed_env in your home or working directory.",
       "https://www.deepspeed.ai/getting-started/#multi-node-environment-variables", not_exported},
  };
  return rules;
}

}  // namespace dshang::doctor
