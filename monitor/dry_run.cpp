#include "monitor/dry_run.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>
#include <string_view>

namespace dshang::monitor {
namespace {

namespace fs = std::filesystem;

constexpr int kMostRanks = 64;
constexpr int kBadInput = 2;
constexpr int kNotFound = 127;

// MiB as `nvidia-smi --query-gpu=memory.total` reports them.
struct Gpu {
  const char* name;
  int mebibytes;
};

constexpr Gpu kGpus[] = {
    {"h100-80g", 81559},    {"h200-141g", 143771}, {"b200-180g", 183359}, {"a100-80g", 81920},
    {"a100-40g", 40960},    {"v100-32g", 32768},   {"v100-16g", 16384},   {"l40s-48g", 46068},
    {"l4-24g", 23034},      {"a10-24g", 23028},    {"t4-16g", 15360},     {"rtx4090-24g", 24564},
    {"rtx3090-24g", 24576},
};

std::string names_of_gpus() {
  std::string names;
  for (const Gpu& gpu : kGpus) names += (names.empty() ? "" : ", ") + std::string(gpu.name);
  return names;
}

const Gpu* find_gpu(const std::string& name) {
  if (name.empty()) return &kGpus[0];
  const auto* found =
      std::find_if(std::begin(kGpus), std::end(kGpus), [&](const Gpu& gpu) { return name == gpu.name; });
  return found == std::end(kGpus) ? nullptr : found;
}

std::string base_name(const std::string& path) { return fs::path(path).filename().string(); }

bool starts_with(std::string_view text, std::string_view beginning) {
  return text.substr(0, beginning.size()) == beginning;
}

// Programs that only start another one, in whose words the launcher is found.
bool is_prefix(const std::string& program) {
  static const std::set<std::string> kPrefixes = {
      "env",    "uv",      "poetry", "pixi",    "pdm",    "hatch",  "conda", "mamba", "micromamba", "nice",
      "ionice", "taskset", "chrt",   "numactl", "stdbuf", "setsid", "nohup", "time",  "timeout"};
  return kPrefixes.count(base_name(program)) != 0;
}

// python, python3, python3.13t
bool is_python(const std::string& program) {
  const std::string name = base_name(program);
  return starts_with(name, "python") && name.find_first_not_of("0123456789.t", 6) == std::string::npos;
}

// Whether the words from `first` on, up to the launcher's own program, contain one of the options.
bool has_option(const std::vector<std::string>& command, size_t first,
                std::initializer_list<std::string_view> options) {
  for (size_t i = first; i < command.size(); ++i) {
    for (std::string_view option : options) {
      if (command[i] == option || starts_with(command[i], std::string(option) + "=")) return true;
    }
  }
  return false;
}

bool is_launcher(const std::string& word) {
  const std::string name = base_name(word);
  return name == "torchrun" || name == "deepspeed" || name == "deepspeed.pt" || name == "ds" ||
         name == "accelerate";
}

// Where the launcher or the Python program is that the command comes to.
size_t program_of(const std::vector<std::string>& command) {
  if (!is_prefix(command[0])) return 0;
  for (size_t i = 1; i < command.size(); ++i) {
    if (is_launcher(command[i]) || is_python(command[i])) return i;
  }
  return 0;
}

// The position behind the launcher's name, where its options begin; 0: the command is none of that launcher.
size_t options_of(const std::vector<std::string>& command, size_t at, std::string_view program,
                  std::initializer_list<std::string_view> modules) {
  const std::string name = base_name(command[at]);
  if (name == program || (program == "deepspeed" && (name == "deepspeed.pt" || name == "ds"))) return at + 1;
  if (!is_python(command[at])) return 0;
  for (size_t i = at + 1; i + 1 < command.size() && starts_with(command[i], "-"); ++i) {
    if (command[i] != "-m") continue;
    return std::find(modules.begin(), modules.end(), command[i + 1]) != modules.end() ? i + 2 : 0;
  }
  return 0;
}

void add_ranks(const DryRunOptions& options, DryRunPlan* plan) {
  std::vector<std::string>& command = plan->command;
  const std::string ranks = std::to_string(options.ranks);
  plan->once_a_rank = false;
  const size_t program = program_of(command);
  if (const size_t at =
          options_of(command, program, "torchrun", {"torch.distributed.run", "torch.distributed.launch"})) {
    if (!has_option(command, at, {"--nproc_per_node", "--nproc-per-node"})) {
      command.insert(command.begin() + at, "--nproc_per_node=" + ranks);
    }
  } else if (const size_t at = options_of(command, program, "deepspeed", {"deepspeed.launcher.runner"})) {
    if (!has_option(command, at, {"--num_gpus", "--include", "-i", "--exclude", "-e", "--hostfile", "-H"})) {
      command.insert(command.begin() + at, {"--num_gpus", ranks});
    }
  } else if (options_of(command, program, "accelerate",
                        {"accelerate.commands.launch", "accelerate.commands.accelerate_cli"})) {
    // It takes as many ranks as there are devices.
  } else {
    // Anything else than a Python program starts its ranks itself: a shell script around a launcher, mpirun.
    plan->once_a_rank = is_python(command[program]);
  }
}

std::string with_behind(const std::string& first, const char* variable, const char* separator) {
  const char* already = getenv(variable);
  return already != nullptr && *already != '\0' ? first + separator + already : first;
}

std::optional<DryRunPlaces> find_places(std::string* error) {
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const char* place : {".", "../lib", "../lib64", "../lib/dshang"}) {
    const fs::path directory = (program / place).lexically_normal();
    if (!fs::exists(directory / "libsimcuda.so", ignored)) continue;
    std::string libraries = directory.string();
    if (libraries.size() > 1 && libraries.back() == '/') libraries.pop_back();
    return DryRunPlaces{libraries, libraries + "/simgpu_python"};
  }
  *error = "libsimcuda.so is not beside this program (" + program.string() + ")";
  return std::nullopt;
}

int bad_input(const std::string& text) {
  fprintf(stderr, "dshang: dry-run: %s\n", text.c_str());
  return kBadInput;
}

// All processes of the run share the memory of the devices, through a file that goes with this process and is
// there for those that close what they inherit.
void share_machine() {
  const int file = memfd_create("simgpu-machine", 0);
  if (file < 0) return;
  const std::string path = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(file);
  setenv("SIMGPU_MACHINE", path.c_str(), 1);
}

int replace_process(const std::vector<std::string>& command) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execvp(words[0], words.data());
  fprintf(stderr, "dshang: dry-run: cannot start %s: %s\n", words[0], strerror(errno));
  return kNotFound;
}

}  // namespace

std::optional<DryRunPlan> plan_dry_run(const DryRunOptions& options, const DryRunPlaces& places,
                                       std::string* error) {
  const Gpu* gpu = find_gpu(options.gpu);
  if (options.ranks < 1 || options.ranks > kMostRanks) {
    *error = "the number of ranks is " + std::to_string(options.ranks) + ", not 1 to " +
             std::to_string(kMostRanks);
  } else if (gpu == nullptr) {
    *error = "unknown GPU " + options.gpu + "; known are " + names_of_gpus();
  } else if (options.numerics != "off" && options.numerics != "int" && options.numerics != "small") {
    *error = "numerics are " + options.numerics + ", not off, int or small";
  } else if (options.command.empty() || options.command[0].empty()) {
    *error = "no command; for example: dshang dry-run -n 8 -- deepspeed train.py";
  } else if (places.libraries.find_first_of(" :") != std::string::npos) {
    *error = "a library in a directory with a space or colon in its name cannot be preloaded (" +
             places.libraries + ")";
  }
  if (!error->empty()) return std::nullopt;

  DryRunPlan plan;
  const std::string preload = places.libraries + "/libdshang.so " + places.libraries + "/libsimcuda.so";
  plan.environment = {
      {"LD_PRELOAD", with_behind(preload, "LD_PRELOAD", " ")},
      {"PYTHONPATH", with_behind(places.shim, "PYTHONPATH", ":")},
      {"SIMGPU_DEVICES", std::to_string(options.ranks)},
      // The user's entries win; one alone may be for one device.
      {"SIMGPU_VRAM_BYTES",
       with_behind(std::to_string(static_cast<long long>(gpu->mebibytes) << 20), "SIMGPU_VRAM_BYTES", ",")},
      {"SIMGPU_NUM", options.numerics},
      {"DSHANG_DRY_RUN", gpu->name},
      {"TRITON_LIBCUDA_PATH", places.libraries},  // Triton looks for the file libcuda.so.1 there
  };
  // Computed floats are real in `small` only; moving all of them costs time and memory for nothing elsewhere.
  if (getenv("SIMNCCL_DATA_CAP") == nullptr) {
    plan.environment.emplace_back("SIMNCCL_DATA_CAP", options.numerics == "small" ? "0" : "1M");
  }
  plan.command = options.command;
  add_ranks(options, &plan);
  return plan;
}

int dry_run(const DryRunOptions& options) {
  std::string error;
  const std::optional<DryRunPlaces> places = find_places(&error);
  const std::optional<DryRunPlan> plan = places ? plan_dry_run(options, *places, &error) : std::nullopt;
  if (!plan) return bad_input(error);
  for (const char* library : {"libdshang.so", "libcuda.so.1", "libnvidia-ml.so.1"}) {
    if (access((places->libraries + "/" + library).c_str(), R_OK) != 0) {
      return bad_input(std::string(library) + " is not in " + places->libraries);
    }
  }
  for (const auto& [name, value] : plan->environment) setenv(name.c_str(), value.c_str(), 1);
  share_machine();
  fprintf(stderr, "dshang: dry run of %d %s on simulated GPUs with the memory of %s, numerics %s\n",
          options.ranks, options.ranks == 1 ? "rank" : "ranks", find_gpu(options.gpu)->name,
          options.numerics.c_str());
  return plan->once_a_rank ? run_ranks(*plan, options.ranks) : replace_process(plan->command);
}

}  // namespace dshang::monitor
