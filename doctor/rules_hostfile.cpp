// The hostfile, and the nodes that it names.
#include <regex>
#include <set>

#include "doctor/rule.h"

namespace dshang::doctor {
namespace {

bool skipped(const std::string& line) {
  std::size_t at = line.find_first_not_of(" \t\r");
  return at == std::string::npos || line[at] == '#';
}

std::string hint(const std::string& line) {
  static const std::regex blanks("slots\\s+=|slots=\\s"), colon("^\\s*\\S+:\\d+\\s*$"), slots("slots");
  if (std::regex_search(line, blanks)) return "no blanks around =";
  if (std::regex_search(line, colon)) return "slots are given as slots=N, not after a colon";
  if (!std::regex_search(line, slots)) return "slots=N is missing";
  return "a line is: host slots=N";
}

void syntax(const Facts& facts, Hits& hits) {
  if (!facts.hostfile) return;
  static const std::regex entry("^\\s*(\\S+)\\s+slots=(\\d+).*");  // launcher/runner.py, parse_resource_spec
  std::set<std::string> hosts;
  int number = 0, entries = 0;
  for (const std::string& line : facts.hostfile->lines) {
    ++number;
    if (skipped(line)) continue;
    ++entries;
    std::string where = facts.hostfile->path + ":" + std::to_string(number);
    std::smatch parts;
    if (!std::regex_match(line, parts, entry)) {
      hits.add(where, "'" + line + "' is no entry: " + hint(line));
      continue;
    }
    if (parts[1].str().starts_with("\xef\xbb\xbf"))
      hits.add(where,
               "a byte order mark stands before the host's name and becomes part of it: save it without");
    if (!hosts.insert(parts[1]).second) hits.add(where, "the host " + parts[1].str() + " is named twice");
    if (parts[2].str().find_first_not_of('0') == std::string::npos)
      hits.add(where, parts[1].str() + " has no slots: nothing is started there");
  }
  if (entries == 0) hits.add(facts.hostfile->path, "the hostfile names no host");
}

void unreachable(const Facts& facts, Hits& hits) {
  for (const Node& node : facts.other_nodes) {
    if (!node.unreachable.empty()) hits.add(node.name, node.name + " cannot be reached: " + node.unreachable);
  }
}

void unlike(const Facts& facts, Hits& hits) {
  if (facts.other_nodes.empty()) return;
  const Node& first = facts.other_nodes.front();
  for (const Node& node : facts.other_nodes) {
    if (!node.unreachable.empty() || !first.unreachable.empty()) continue;
    for (const auto& [name, value] : first.facts) {
      auto other = node.facts.find(name);
      if (other == node.facts.end() || other->second == value) continue;
      std::string shown =
          name == "ds_config" || name == "script"
              ? name + " has another content on " + node.name + " than on " + first.name
              : name + " is " + other->second + " on " + node.name + ", " + value + " on " + first.name;
      hits.add(node.name, shown);
    }
  }
}

}  // namespace

const Rules& hostfile_rules() {
  static const Rules rules = {
      {"12.9-5", Area::kHostfile, Severity::kWillFail, "each line of the hostfile",
       "it is not `host slots=N`, a host stands twice, slots are 0, or there is no host",
       "the launcher's format is fixed", "Write `worker-1 slots=8`, one line a host; # begins a comment.",
       "Hostfile contains a bad entry; "
       "https://www.deepspeed.ai/getting-started/#resource-configuration-multi-node",
       syntax},
      {"12.9-1", Area::kHostfile, Severity::kWillFail, "ssh to every host, without a password", "it fails",
       "the launcher starts ranks over ssh and cannot answer a question",
       "Give every node your key (ssh-copy-id) and accept its host key once; install pdsh; or use --no_ssh "
       "with --node_rank.",
       "Using hostfile at … but host=… was not reachable via ssh", unreachable},
      {"12.9-2", Area::kHostfile, Severity::kWrongResult,
       "content of ds_config and script, versions, on every node", "a node has another",
       "each node reads its own copy, and nothing compares them",
       "Use a shared file system, or copy files and environment to every node before the start.",
       "https://www.deepspeed.ai/getting-started/", unlike},
  };
  return rules;
}

}  // namespace dshang::doctor
