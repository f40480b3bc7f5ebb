#include <algorithm>
#include <cstring>
#include <set>

#include "doctor/nodes.h"
#include "doctor/rule.h"

namespace dshang::doctor {
namespace {

constexpr const char* kRefused = "D-02";
constexpr const char* kRemoved = "X-26";  // DeepSpeed stops there and reads no further
constexpr std::size_t kMostTold = 20;     // hits of a rule

void stop_at_removed_blocks(std::vector<Finding>* findings) {
  auto removed = [](const Finding& finding) { return !std::strcmp(finding.rule->id, kRemoved); };
  if (std::none_of(findings->begin(), findings->end(), removed)) return;
  std::erase_if(*findings, [&](const Finding& finding) {
    return finding.rule->area == Area::kConfig && !removed(finding) && std::strcmp(finding.rule->id, "X-38");
  });
}

// DeepSpeed's own error is said only where no rule explains it.
void drop_explained_refusal(std::vector<Finding>* findings) {
  auto explains = [](const Finding& finding) {
    return finding.rule->area == Area::kConfig && finding.severity == Severity::kWillFail &&
           std::strcmp(finding.rule->id, kRefused);
  };
  if (std::none_of(findings->begin(), findings->end(), explains)) return;
  std::erase_if(*findings, [](const Finding& finding) { return !std::strcmp(finding.rule->id, kRefused); });
}

// Rules that are asked of each node that answered, too.
bool of_a_machine(const Rule& rule) {
  constexpr const char* kTooManyRanks = "X-33";
  return rule.area == Area::kMachine || !std::strcmp(rule.id, kTooManyRanks);
}

std::vector<std::pair<std::string, Facts>> all_nodes(const Facts& facts) {
  std::vector<std::pair<std::string, Facts>> nodes;
  for (const Node& node : facts.other_nodes) {
    if (node.unreachable.empty() && !node.facts.empty())
      nodes.emplace_back(node.name, facts_of_node(facts, node));
  }
  return nodes;
}

// Equal words of several nodes are told once.
void ask_nodes(const Rule& rule, const std::vector<std::pair<std::string, Facts>>& nodes, Hits* hits) {
  std::vector<std::pair<Hits::Hit, std::vector<std::string>>> told;
  for (const auto& [name, facts] : nodes) {
    Hits of_node;
    rule.check(facts, of_node);
    for (const Hits::Hit& hit : of_node.all()) {
      auto same = std::find_if(told.begin(), told.end(),
                               [&](const auto& one) { return one.first.summary == hit.summary; });
      if (same == told.end()) same = told.insert(told.end(), {hit, {}});
      same->second.push_back(name);
    }
  }
  for (const auto& [hit, names] : told)
    hits->add(hit.where + " of " + node_names(names), "on " + node_names(names) + ": " + hit.summary, hit.fix,
              hit.severity);
}

}  // namespace

Finding merged(const Rule& rule, std::vector<Hits::Hit> hits) {
  auto severity = [&](const Hits::Hit& hit) { return hit.severity.value_or(rule.severity); };
  std::size_t left_out = hits.size() - std::min(hits.size(), kMostTold);
  if (left_out) {
    std::stable_sort(hits.begin(), hits.end(),
                     [&](const Hits::Hit& a, const Hits::Hit& b) { return severity(a) < severity(b); });
    hits.resize(kMostTold);
  }
  Finding finding{&rule, Severity::kAdvice, "", "", {}};
  std::set<std::string> told;
  for (const Hits::Hit& hit : hits) {
    finding.severity = std::min(finding.severity, severity(hit));
    if (finding.where.find(hit.where) == std::string::npos)
      finding.where += (finding.where.empty() ? "" : ", ") + hit.where;
    if (told.insert(hit.summary).second)
      finding.summary += (finding.summary.empty() ? "" : "; ") + hit.summary;
    std::string fix = hit.fix.empty() ? rule.fix : hit.fix;
    if (std::find(finding.fix.begin(), finding.fix.end(), fix) == finding.fix.end())
      finding.fix.push_back(fix);
  }
  if (left_out) finding.summary += "; and " + std::to_string(left_out) + " more like these";
  return finding;
}

std::vector<const Rule*> all_rules() {
  std::vector<const Rule*> result;
  for (const Rules& (*area)() :
       {batch_rules, precision_rules, key_rules, zero_rules, optimizer_rules, parameter_rules, hostfile_rules,
        env_rules, network_rules, build_rules, machine_rules, memory_rules, checkpoint_rules, model_rules}) {
    for (const Rule& rule : area()) result.push_back(&rule);
  }
  return result;
}

std::vector<Finding> examine(const Facts& facts, const std::vector<Area>& areas) {
  std::vector<Finding> findings;
  const auto nodes = all_nodes(facts);
  for (const Rule* rule : all_rules()) {
    if (std::find(areas.begin(), areas.end(), rule->area) == areas.end()) continue;
    Hits hits;
    rule->check(facts, hits);
    if (of_a_machine(*rule)) ask_nodes(*rule, nodes, &hits);
    if (!hits.all().empty()) findings.push_back(merged(*rule, hits.all()));
  }
  stop_at_removed_blocks(&findings);
  drop_explained_refusal(&findings);
  auto important = [](const Finding& a, const Finding& b) { return a.severity < b.severity; };
  std::stable_sort(findings.begin(), findings.end(), important);
  return findings;
}

const char* area_name(Area area) {
  constexpr const char* kNames[] = {"config", "hostfile", "env", "machine", "checkpoint", "model"};
  return kNames[static_cast<int>(area)];
}

const char* severity_words(Severity severity) {
  constexpr const char* kWords[] = {"will fail", "will hang", "wrong result", "risk", "slow", "advice"};
  return kWords[static_cast<int>(severity)];
}

const char* report_severity(Severity severity) {
  constexpr const char* kWords[] = {"error", "hang", "error", "warning", "warning", "info"};
  return kWords[static_cast<int>(severity)];
}

}  // namespace dshang::doctor
