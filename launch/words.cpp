#include "launch/words.h"

#include <algorithm>
#include <filesystem>
#include <iterator>

namespace dshang::launch {
namespace {

struct Name {
  std::string_view name;
  Launcher launcher;
};

constexpr Name kPrograms[] = {
    {"deepspeed", Launcher::kDeepSpeed},
    {"deepspeed.pt", Launcher::kDeepSpeed},
    {"ds", Launcher::kDeepSpeed},
    {"torchrun", Launcher::kTorchrun},
    {"accelerate", Launcher::kAccelerate},
    {"accelerate-launch", Launcher::kAccelerate},
    {"srun", Launcher::kSrun},
    {"mpirun", Launcher::kMpirun},
    {"mpiexec", Launcher::kMpirun},
    {"orterun", Launcher::kMpirun},
    {"prterun", Launcher::kMpirun},
    {"mpirun.openmpi", Launcher::kMpirun},
    {"mpiexec.openmpi", Launcher::kMpirun},
    {"mpirun.mpich", Launcher::kMpirun},
    {"mpiexec.mpich", Launcher::kMpirun},
    {"mpiexec.hydra", Launcher::kMpirun},
    {"apptainer", Launcher::kApptainer},
    {"singularity", Launcher::kSingularity},
    {"enroot", Launcher::kEnroot},
};

constexpr Name kModules[] = {
    {"deepspeed.launcher.runner", Launcher::kDeepSpeed},
    {"torch.distributed.run", Launcher::kTorchrun},
    {"torch.distributed.launch", Launcher::kTorchrun},
    {"accelerate.commands.launch", Launcher::kAccelerate},
};

// They execute the command that follows them, with their own environment.
constexpr std::string_view kWrappers[] = {"env",     "nohup",   "nice",     "ionice",  "chrt",
                                          "taskset", "numactl", "setsid",   "timeout", "stdbuf",
                                          "time",    "exec",    "catchsegv"};

Launcher named(const Name* from, const Name* to, std::string_view name) {
  const Name* found = std::find_if(from, to, [&](const Name& one) { return one.name == name; });
  return found == to ? Launcher::kNone : found->launcher;
}

bool is_option(const std::string& word) { return word.size() > 1 && word[0] == '-'; }

bool is_python(const std::string& word) { return base_name(word).starts_with("python"); }

// `python ... -m <module of a launcher>`.
Found by_module(const std::vector<std::string>& words, std::size_t at) {
  for (std::size_t i = at + 1; i + 1 < words.size() && is_option(words[i]); ++i) {
    if (words[i] != "-m") continue;
    Launcher launcher = named(std::begin(kModules), std::end(kModules), words[i + 1]);
    if (launcher != Launcher::kNone) return {launcher, at, i + 2};
    break;
  }
  return {Launcher::kPython, at, at + 1};
}

Found launcher_at(const std::vector<std::string>& words, std::size_t at) {
  if (is_python(words[at])) return by_module(words, at);
  Launcher launcher = named(std::begin(kPrograms), std::end(kPrograms), base_name(words[at]));
  return {launcher, at, at + 1};
}

}  // namespace

std::string base_name(const std::string& path) { return std::filesystem::path(path).filename().string(); }

Found first_launcher(const std::vector<std::string>& words) {
  if (words.empty()) return {};
  bool wrapped =
      std::find(std::begin(kWrappers), std::end(kWrappers), base_name(words[0])) != std::end(kWrappers);
  return wrapped ? next_launcher(words, 0) : launcher_at(words, 0);
}

Found next_launcher(const std::vector<std::string>& words, std::size_t from) {
  for (std::size_t at = from + 1; at < words.size(); ++at) {
    Found found = launcher_at(words, at);
    if (found.launcher != Launcher::kNone) return found;
  }
  return {Launcher::kNone, words.size(), words.size()};
}

std::size_t end_of_options(const std::vector<std::string>& words, std::size_t from,
                           std::initializer_list<std::string_view> flags) {
  while (from < words.size() && is_option(words[from])) {
    const std::string& word = words[from++];
    if (word == "--") break;
    bool alone =
        word.find('=') != std::string::npos || std::find(flags.begin(), flags.end(), word) != flags.end();
    bool glued = word[1] != '-' && word.size() > 2;  // -N2
    if (!alone && !glued && from < words.size()) ++from;
  }
  return from;
}

Given find_option(const std::vector<std::string>& words, std::size_t from, std::size_t to,
                  std::initializer_list<std::string_view> names) {
  to = std::min(to, words.size());
  Given given;  // the last one counts
  for (std::size_t at = from; at < to; ++at) {
    for (std::string_view name : names) {
      if (words[at] == name && at + 1 < to) given = {at + 1, false, true};
      if (words[at].starts_with(std::string(name) + "=")) given = {at, true, true};
    }
  }
  return given;
}

std::string value_of(const std::vector<std::string>& words, const Given& given) {
  if (!given.there) return "";
  const std::string& word = words[given.at];
  return given.joined ? word.substr(word.find('=') + 1) : word;
}

void replace_value(std::vector<std::string>* words, const Given& given, const std::string& value) {
  std::string& word = (*words)[given.at];
  word = given.joined ? word.substr(0, word.find('=') + 1) + value : value;
}

}  // namespace dshang::launch
