// DeepSpeed's launcher.  On one node its ranks are its children.  With a hostfile it starts a runner
// (--launcher), and what reaches the ranks of a node differs from one to the next
// (launcher/multinode_runner.py):
//
//   pdsh                    only what an environment file names, as `export NAME=VALUE;` for the node's shell
//   openmpi                 mpirun; our names go into --launcher_args as -x NAME, since in an environment
//   file some
//                           versions add quotes that become part of the value
//   mpich, impi, mvapich    the same with -genv NAME VALUE
//   slurm                   srun --export=ALL: the environment
//
// What an environment file of the user's own says of the same names would count more: it is merged, and left
// out there.
#include <algorithm>
#include <filesystem>

#include "launch/carried.h"
#include "launch/env_file.h"
#include "launch/launchers.h"

namespace dshang::launch {
namespace {

constexpr const char* kDefaultHostfile = "/job/hostfile";

std::size_t end_of_launcher_options(const Words& words, std::size_t from) {
  return end_of_options(
      words, from,
      {"--module", "--no_python", "--no_local_rank", "--no_ssh", "--no_ssh_check", "--force_multi",
       "--save_pid", "--bind_cores_to_rank", "--quiet", "-q", "-h", "--help"});
}

struct Options {
  std::string runner = "pdsh";
  std::string hostfile = kDefaultHostfile;
  std::string ssh_port, include, exclude;
  int nodes = -1;
  bool no_ssh = false;
  std::size_t end = 0;
};

Options read_options(const Words& words, std::size_t from) {
  Options options;
  options.end = end_of_launcher_options(words, from);
  auto get = [&](std::initializer_list<std::string_view> names, std::string* value) {
    Given given = find_option(words, from, options.end, names);
    if (given.there) *value = value_of(words, given);
  };
  std::string nodes;
  get({"--launcher"}, &options.runner);
  get({"--hostfile", "-H"}, &options.hostfile);
  get({"--ssh_port"}, &options.ssh_port);
  get({"--include", "-i"}, &options.include);
  get({"--exclude", "-e"}, &options.exclude);
  get({"--num_nodes"}, &nodes);
  if (!nodes.empty() && nodes.size() < 7 && nodes.find_first_not_of("0123456789") == std::string::npos)
    options.nodes = std::stoi(nodes);
  std::transform(options.runner.begin(), options.runner.end(), options.runner.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  auto end = words.begin() + static_cast<std::ptrdiff_t>(options.end);
  options.no_ssh = std::find(words.begin() + static_cast<std::ptrdiff_t>(from), end, "--no_ssh") != end;
  return options;
}

std::string without_quotes(const std::string& value) {
  bool quoted = value.size() > 1 && (value[0] == '"' || value[0] == '\'') && value.back() == value[0];
  return quoted ? value.substr(1, value.size() - 2) : value;
}

bool is_carried(const std::vector<std::string>& names, const EnvLine& line) {
  return std::find(names.begin(), names.end(), line.name) != names.end();
}

// For the node's shell, where LD_PRELOAD may be set by its start files: it stays, behind the library.
std::string preload_for_pdsh(const Place& place, const std::vector<EnvLine>& user) {
  std::string preload = for_pdsh(preload_of(place)) + "${LD_PRELOAD:+:$LD_PRELOAD}";
  for (const EnvLine& line : user) {
    if (line.name == kPreload) preload = in_front(for_pdsh(preload_of(place)), without_quotes(line.value));
  }
  return preload;
}

bool carry_by_file(const Place& place, const std::vector<EnvLine>& user, Plan* plan, std::string* error) {
  std::vector<EnvLine> lines;
  const std::vector<std::string> names = carried_names(place, *plan);
  for (const EnvLine& line : user) {
    if (!is_carried(names, line)) lines.push_back(line);
  }
  for (const std::string& name : names) {
    const std::string value = carried_value(place, *plan, name);
    if (value.find('\n') != std::string::npos) {
      *error = name + " has several lines; DeepSpeed's environment file takes one";
      return false;
    }
    lines.push_back({name, name == kPreload ? preload_for_pdsh(place, user) : for_pdsh(value)});
  }
  plan->env_file = text_of(lines);
  plan->way = "DS_ENV_FILE, for pdsh";
  return true;
}

// What the user's files say of our names comes into our environment, and out of the files.
void take_over(const Place& place, const std::vector<EnvLine>& user, Plan* plan) {
  std::vector<EnvLine> lines;
  const std::vector<std::string> names = carried_names(place, *plan);
  for (const EnvLine& line : user) {
    if (line.name == kPreload) {
      const std::string behind = without_quotes(line.value) + ":" + carried_value(place, {}, kPreload);
      plan->environment[kPreload] = in_front(preload_of(place), behind);
    }
    if (!is_carried(names, line)) lines.push_back(line);
  }
  if (lines.size() != user.size()) plan->env_file = text_of(lines);
}

// DeepSpeed takes the words apart as a shell would (shlex).
std::string shell_word(const std::string& text) {
  std::string quoted = "'";
  for (char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

void add_launcher_args(std::size_t from, std::size_t end, const std::string& added, Plan* plan) {
  Given given = find_option(plan->command, from, end, {"--launcher_args"});
  if (given.there) {
    replace_value(&plan->command, given, value_of(plan->command, given) + " " + added);
  } else {  // joined, as a word of its own must not begin with a dash
    plan->command.insert(plan->command.begin() + static_cast<std::ptrdiff_t>(from),
                         "--launcher_args=" + added);
  }
}

void carry_by_mpirun(const Place& place, const Found& found, const Options& options, Plan* plan) {
  bool open_mpi = options.runner == "openmpi";
  std::string added;
  for (const std::string& name : carried_names(place, *plan)) {
    added += (added.empty() ? "" : " ");
    added += open_mpi ? "-x " + name : "-genv " + name + " " + shell_word(carried_value(place, *plan, name));
  }
  add_launcher_args(found.options, options.end, added, plan);
  plan->way = open_mpi ? "mpirun -x" : "mpirun -genv";
}

}  // namespace

bool plan_deepspeed(const Place& place, const Found& found, Plan* plan, std::string* error) {
  Options options = read_options(plan->command, found.options);
  std::filesystem::path hostfile = std::filesystem::path(place.folder) / options.hostfile;
  std::error_code none;
  if (options.no_ssh || !std::filesystem::is_regular_file(hostfile, none)) return true;
  agree_on_folder(place, plan);
  plan->nodes = Nodes{options.hostfile, options.include, options.exclude, options.nodes, options.ssh_port};
  auto user = read_user_lines(place, error);
  if (!user) return false;
  if (options.runner == "pdsh") return carry_by_file(place, *user, plan, error);
  take_over(place, *user, plan);
  if (options.runner == "slurm") {
    plan->way = "the environment, which srun hands on";
  } else {
    carry_by_mpirun(place, found, options, plan);
  }
  return true;
}

}  // namespace dshang::launch
