// The other nodes, over ssh: whether they can be reached, and what must be the same on all of them.
#include <future>
#include <regex>
#include <set>
#include <sstream>

#include "doctor/command.h"
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

// Prints "dshang-fact NAME VALUE" lines; what a host lacks prints nothing.
std::string question(const Facts& facts, const std::string& folder) {
  auto say = [](const std::string& name, const std::string& command) {
    return "v=$(" + command + " 2>/dev/null | head -n 1); [ -n \"$v\" ] && echo \"" + kMark + name +
           " $v\"; ";
  };
  std::string text = "cd " + shell_word(folder) + " 2>/dev/null; ";
  text += say("driver", "sed -n 's/.*Module  *\\([0-9.]*\\).*/\\1/p' /proc/driver/nvidia/version");
  for (const char* package : {"torch", "deepspeed", "transformers"}) {
    std::string python = std::string("import importlib.metadata as m; print(m.version(\"") + package + "\"))";
    text += say(package, "python3 -c " + shell_word(python));
  }
  if (facts.config) text += say("ds_config", "sha256sum < " + shell_word(facts.config->path));
  if (!facts.launch.script.empty()) text += say("script", "sha256sum < " + shell_word(facts.launch.script));
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
    std::istringstream words(line.substr(std::string(kMark).size()));
    std::string name, value;
    words >> name >> value;
    node.facts[name] = value;
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
  static const std::regex entry("^\\s*([^\\s#-]\\S*)\\s+slots=\\d+.*");
  std::set<std::string> seen;
  std::vector<std::future<Node>> answers;
  std::string text = question(*facts, folder);
  for (const std::string& line : facts->hostfile->lines) {
    std::smatch parts;
    if (std::regex_match(line, parts, entry) && seen.insert(parts[1]).second)
      answers.push_back(std::async(std::launch::async, ask, parts[1].str(), text));
  }
  for (auto& answer : answers) facts->other_nodes.push_back(answer.get());
}

}  // namespace dshang::doctor
