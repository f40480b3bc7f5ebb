// The other nodes, over ssh: whether they can be reached, and what must be the same on all of them.
#include <filesystem>
#include <future>
#include <regex>
#include <set>
#include <sstream>

#include "doctor/command.h"
#include "doctor/hostfile.h"
#include "doctor/measure.h"

namespace dshang::doctor {
namespace {

constexpr double kPatience = 15;  // seconds for one host
constexpr const char* kMark = "dshang-fact ";

// Quoted for a POSIX shell.
std::string shell_word(const std::string& text) {
  std::string result = "'";
  for (char c : text) result += c == '\'' ? "'\\''" : std::string(1, c);
  return result + "'";
}

// Of the interpreter that the launch command would start there: packages, and the ops that DeepSpeed was
// built with, from what it wrote when it was installed.
constexpr const char* kPackages = R"py(
import importlib.metadata as m, importlib.util as u, os, re
def say(*words): print("dshang-fact", *words)
def version(name):
    try: return m.version(name)
    except Exception: return "none"
for name in ("torch", "deepspeed", "transformers"): say(name, version(name))
try: text = open(os.path.join(os.path.dirname(u.find_spec("deepspeed").origin), "git_version_info_installed.py")).read()
except Exception: text = ""
ops, torch = re.search(r"^installed_ops.*", text, re.M), re.search(r"^torch_info.*'version': '([0-9.]+)", text, re.M)
if ops: say("ops", *(sorted(re.findall(r"'(\w+)': True", ops[0])) or ["none"]))
if torch: say("ops_built_with", torch[1])
)py";

// What a machine has, each as a command of the shell whose first line tells it.
constexpr std::pair<const char*, const char*> kQuestions[] = {
    {"driver",
     "sed -n 's/.*Module  *\\([0-9.]*\\).*/\\1/p' /proc/driver/nvidia/version | grep . || echo none"},
    {"shm_bytes", "df -kP /dev/shm | awk 'NR == 2 {printf \"%.0f\\n\", $2 * 1024}'"},
    {"memlock_bytes", "ulimit -l | awk '/^[0-9]/ {printf \"%.0f\\n\", $1 * 1024; next} {print}'"},
    {"open_files", "ulimit -n"},
    {"gpus", "command -v nvidia-smi > /dev/null && nvidia-smi -L | grep -c '^GPU '"},
    {"gpu", "nvidia-smi --query-gpu=name --format=csv,noheader | sort -u | paste -sd, -"},
    {"nvcc",
     "{ ${CUDA_HOME:+$CUDA_HOME/bin/}nvcc -V || /usr/local/cuda/bin/nvcc -V; } | "
     "sed -n 's/.*release \\([0-9.]*\\).*/\\1/p' | grep . || echo none"},
    {"gxx", "g++ -dumpfullversion -dumpversion || echo none"},
    {"libaio", "ls /usr/include/libaio.h /usr/local/include/libaio.h | grep -q . && echo yes || echo no"},
    {"interfaces", "ls /sys/class/net | paste -sd' ' -"},
};

// Prints "dshang-fact NAME VALUE" lines; what a host does not know prints nothing.
std::string question(const Facts& facts, const std::string& folder) {
  auto say = [](const std::string& name, const std::string& command) {
    return "v=$({ " + command + "; } 2>/dev/null | head -n 1); [ -n \"$v\" ] && echo \"" + kMark + name +
           " $v\"; ";
  };
  auto content = [&](const std::string& name, const std::string& path) {
    return say(name, "[ -e " + shell_word(path) + " ] || echo none; sha256sum < " + shell_word(path) +
                         " | cut -d' ' -f1");
  };
  std::string python = python_of(facts);
  std::string folder_of_python = python.substr(0, python.rfind('/') + 1);
  std::string text = "cd " + shell_word(folder) + " 2>/dev/null; p=python3; ";
  if (python.starts_with('/'))
    text += "if [ -x " + shell_word(python) + " ]; then p=" + shell_word(python) + "; else echo " + kMark +
            "python none; fi; ";
  for (const auto& [name, command] : kQuestions) text += say(name, command);
  text += say("ninja", "{ command -v ninja || [ -x " + shell_word(folder_of_python + "ninja") +
                           " ]; } > /dev/null && echo yes || echo no");
  text += "\"$p\" -c " + shell_word(kPackages) + " 2>/dev/null; ";
  std::error_code error;
  auto is_file = [&](const std::string& path) { return std::filesystem::is_regular_file(path, error); };
  if (facts.config && is_file(facts.config->path)) text += content("ds_config", facts.config->path);
  if (is_file(facts.launch.script)) text += content("script", facts.launch.script);
  return text + "true";
}

std::string last_line(const std::string& text) {
  std::string last;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty()) last = line;
  }
  return last;
}

Node ask(const std::string& host, const std::string& text) {
  int status = 0;
  std::string said = output_of(
      {"ssh", "-o", "BatchMode=yes", "-o", "PasswordAuthentication=no", "-o", "ConnectTimeout=5", host, text},
      kPatience, &status);
  Node node{host, "", {}};
  std::istringstream lines(said);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(kMark)) continue;
    std::string told = line.substr(std::string(kMark).size());
    std::size_t blank = told.find(' ');
    if (blank != std::string::npos) node.facts[told.substr(0, blank)] = told.substr(blank + 1);
  }
  if (status == 0) return node;
  node.unreachable = last_line(said);
  if (node.unreachable.empty())
    node.unreachable = status < 0 ? "no answer from ssh" : "ssh ended with status " + std::to_string(status);
  return node;
}

}  // namespace

void measure_nodes(const std::string& folder, Facts* facts) {
  if (!facts->hostfile) return;
  std::set<std::string> seen;
  std::vector<std::pair<int, std::future<Node>>> answers;
  std::string text = question(*facts, folder);
  for (const std::string& line : facts->hostfile->lines) {
    auto entry = entry_of(line);
    if (!entry || entry->host.starts_with('-')) continue;  // ssh would take it for an option
    if (seen.insert(entry->host).second)
      answers.emplace_back(entry->slots, std::async(std::launch::async, ask, entry->host, text));
  }
  for (auto& [slots, answer] : answers) {
    facts->other_nodes.push_back(answer.get());
    facts->other_nodes.back().slots = slots;
  }
}

}  // namespace dshang::doctor
