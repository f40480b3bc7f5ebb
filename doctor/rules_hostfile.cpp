// The hostfile, and the nodes that it names.
#include <algorithm>
#include <map>
#include <regex>
#include <set>

#include "doctor/hostfile.h"
#include "doctor/nodes.h"
#include "doctor/resources.h"
#include "doctor/rule.h"

namespace dshang::doctor {
namespace {

constexpr int kMostBad = 4;  // lines that are quoted

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
  if (facts.hostfile->no_utf8)
    hits.add(facts.hostfile->path + ":" + std::to_string(facts.hostfile->no_utf8),
             "the line is no UTF-8, and the launcher stops there, be it a comment", "Save the file as UTF-8.");
  std::set<std::string> hosts;
  int number = 0, entries = 0, bad = 0;
  for (const std::string& line : facts.hostfile->lines) {
    ++number;
    if (skipped(line)) continue;
    ++entries;
    std::string where = facts.hostfile->path + ":" + std::to_string(number);
    auto entry = entry_of(line);
    if (!entry) {
      if (++bad <= kMostBad) hits.add(where, "'" + shortened(line) + "' is no entry: " + hint(line));
      continue;
    }
    if (entry->host.starts_with("\xef\xbb\xbf"))
      hits.add(where,
               "a byte order mark stands before the host's name and becomes part of it: save it without");
    if (!hosts.insert(entry->host).second) hits.add(where, "the host " + entry->host + " is named twice");
    if (entry->slots == 0) hits.add(where, entry->host + " has no slots: nothing is started there");
    if (entry->too_many)
      hits.add(where, entry->host + " has more than " + std::to_string(kMostSlots) +
                          " slots: the launcher makes a list of them all");
  }
  if (bad > kMostBad)
    hits.add(facts.hostfile->path, std::to_string(bad - kMostBad) + " more lines are no entries either");
  if (entries == 0) hits.add(facts.hostfile->path, "the hostfile names no host");
}

// Options of the launcher that stand behind the script go to the script.
void behind_the_script(const Launch& launch, Hits& hits) {
  auto script = std::find(launch.words.begin(), launch.words.end(), launch.script);
  for (; !launch.script.empty() && script != launch.words.end(); ++script) {
    std::string name = script->substr(0, script->find('='));
    if (!among(name, {"--num_gpus", "--num_nodes", "--hostfile", "--include", "--exclude"})) continue;
    bool read = launch.script_text.find(name.substr(2)) != std::string::npos;
    if (!read)
      hits.add(launch.script,
               name + " stands behind " + launch.script + " and goes to it, not to the launcher",
               "Write the launcher's options before the script.",
               launch.script_text.empty() ? Severity::kAdvice : Severity::kRisk);
  }
}

void selection(const Facts& facts, Hits& hits) {
  if (facts.launch.launcher != "deepspeed") return;
  const std::string* named = launch_option(facts.launch, {"hostfile", "H"});
  auto started = resources_of(facts);
  if (started && !started->refused.empty())
    hits.add("launch command", "the launcher refuses the command: " + started->refused);
  if (named && !facts.hostfile && !facts.told)
    hits.add(*named,
             "the launch command names the hostfile " + *named +
                 ", which does not exist here: the launcher trains on this machine alone",
             "Correct the path, or leave --hostfile out.", Severity::kRisk);
  behind_the_script(facts.launch, hits);
}

void unreachable(const Facts& facts, Hits& hits) {
  for (const Node& node : facts.other_nodes) {
    if (!node.unreachable.empty()) hits.add(node.name, node.name + " cannot be reached: " + node.unreachable);
  }
}

// Facts of nodes that need not agree, or that another rule speaks of.
bool of_each_node(const std::string& name) {
  for (const char* own : {"interfaces", "gpus", "python", "ops", "ops_built_with"}) {
    if (name == own) return true;
  }
  return false;
}

// What ranks run, as against limits and tools, which may differ and do no harm.
bool of_the_program(const std::string& name) {
  for (const char* one : {"driver", "torch", "deepspeed", "transformers", "ds_config", "script"}) {
    if (name == one) return true;
  }
  return false;
}

using NodesByValue = std::map<std::string, std::vector<std::string>>;

std::map<std::string, NodesByValue> nodes_by_fact(const Facts& facts) {
  std::map<std::string, NodesByValue> result;
  for (const Node& node : facts.other_nodes) {
    for (const auto& [name, value] : node.facts) {
      if (node.unreachable.empty() && !of_each_node(name)) result[name][value].push_back(node.name);
    }
  }
  return result;
}

// The value of most nodes; of equally many, that of the first in the hostfile.
const NodesByValue::value_type& usual(const Facts& facts, const std::string& fact,
                                      const NodesByValue& values) {
  const NodesByValue::value_type* most = nullptr;
  for (const Node& node : facts.other_nodes) {
    auto value = node.facts.find(fact);
    auto one = value == node.facts.end() ? values.end() : values.find(value->second);
    if (one != values.end() && (!most || one->second.size() > most->second.size())) most = &*one;
  }
  return *most;
}

void unlike(const Facts& facts, Hits& hits) {
  for (const auto& [name, values] : nodes_by_fact(facts)) {
    if (values.size() < 2) continue;
    const auto& [common, with_common] = usual(facts, name, values);
    bool file = name == "ds_config" || name == "script";
    for (const auto& [value, nodes] : values) {
      if (value == common || (file && (value == kNone || common == kNone))) continue;
      std::string on = " on " + node_names(nodes), others = " on " + node_names(with_common);
      std::string said = file ? name + " has another content" + on + " than" + others
                              : name + " is " + value + on + ", " + common + others;
      hits.add(node_names(nodes), said, "", of_the_program(name) ? Severity::kWrongResult : Severity::kRisk);
    }
  }
}

// What the launcher starts there and does not find.
void missing_there(const Facts& facts, Hits& hits) {
  std::map<std::string, std::vector<std::string>> without;
  for (const Node& node : facts.other_nodes) {
    for (const char* name : {"python", "script"}) {
      auto value = node.facts.find(name);
      if (value != node.facts.end() && value->second == kNone) without[name].push_back(node.name);
    }
  }
  for (const auto& [name, nodes] : without) {
    std::string what = name == "script" ? facts.launch.script : "the Python program of the launch command";
    hits.add(node_names(nodes), what + " does not exist on " + node_names(nodes),
             "Install it at the same path on every node, or use a shared file system.", Severity::kWillFail);
  }
}

void not_alike(const Facts& facts, Hits& hits) {
  missing_there(facts, hits);
  unlike(facts, hits);
}

}  // namespace

const Rules& hostfile_rules() {
  static const Rules rules = {
      {"12.9-5", Area::kHostfile, Severity::kWillFail, "each line of the hostfile",
       "it is not `host slots=N`, a host stands twice, slots are 0 or more than 100 000, or there is no host",
       "the launcher's format is fixed", "Write `worker-1 slots=8`, one line a host; # begins a comment.",
       "Hostfile contains a bad entry; "
       "https://www.deepspeed.ai/getting-started/#resource-configuration-multi-node",
       syntax},
      {"D-03", Area::kHostfile, Severity::kWillFail,
       "--hostfile, --include, --exclude, --num_nodes, --num_gpus of the deepspeed launcher",
       "they exclude each other, name a host or slot that is not there, leave none, or stand behind the "
       "script",
       "the launcher looks hosts and slots up in the hostfile, or on this machine where there is none",
       "Name hosts and slots of the hostfile: --include worker-1@worker-2:0,1; or numbers: --num_nodes, "
       "--num_gpus.",
       "Cannot specify num_nodes/gpus with include/exclude; Hostname … not found in hostfile; No slot … "
       "specified on host",
       selection},
      {"12.9-1", Area::kHostfile, Severity::kWillFail, "ssh to every host, without a password", "it fails",
       "the launcher starts ranks over ssh and cannot answer a question",
       "Give every node your key (ssh-copy-id) and accept its host key once; install pdsh; or use --no_ssh "
       "with --node_rank.",
       "Using hostfile at … but host=… was not reachable via ssh", unreachable},
      {"12.9-2", Area::kHostfile, Severity::kWrongResult,
       "content of ds_config and script, interpreter, versions, limits and tools, on every node (--ssh)",
       "a node has another, or lacks it", "each node reads its own copy, and nothing compares them",
       "Use a shared file system, or copy files and environment to every node before the start.",
       "https://www.deepspeed.ai/getting-started/", not_alike},
  };
  return rules;
}

}  // namespace dshang::doctor
