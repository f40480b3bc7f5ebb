// parameters-differ: ranks gave the framework models of different structure.
//
// Compared is what the probe noted when deepspeed.initialize or DistributedDataParallel took the model over,
// before anything was broadcast: names, shapes, types, and which parameters are frozen.  ZeRO-3 shards stand
// with the shape of the whole, experts are left out.  Values are not compared: they lie on the device.
#include <algorithm>
#include <map>

#include "detectors/known_facts.h"
#include "detectors/words.h"

namespace dshang::detect {
namespace {

constexpr int kMostModels = 8;  // of one process

struct Model {
  std::size_t count = 0;
  std::map<std::size_t, std::string> entries;  // by position, as far as they were recorded
};

std::size_t position_of(std::string_view text) {
  return static_cast<std::size_t>(number_of(text).value_or(0));
}

// Chunks: key "parameters.1.<first>", value "<hash> <entry> <entry> ..." ("..." = cut).
Model model_of(const JobView& view, const job::RankView& rank, const std::string& key) {
  Model model;
  const std::string& whole = fact_of(view, rank, {key});
  model.count = position_of(std::string_view(whole).substr(0, whole.find(' ')));
  const auto& facts = rank.records().facts;
  for (std::uint64_t n = facts.first(); n < facts.end(); ++n) {
    const std::string& name = view.names().text(facts.at(n).key);
    if (!name.starts_with(key + ".")) continue;
    std::size_t at = position_of(std::string_view(name).substr(key.size() + 1));
    std::string_view rest = view.names().text(facts.at(n).value);
    rest.remove_prefix(std::min(rest.find(' '), rest.size()));
    while (!rest.empty()) {
      rest.remove_prefix(1);
      std::string_view entry = rest.substr(0, rest.find(' '));
      if (entry != "...") model.entries[at++] = std::string(entry);
      rest.remove_prefix(entry.size());
    }
  }
  return model;
}

std::string name_in(const std::string& entry) { return entry.substr(0, entry.find('[')); }

// "head.weight[9,32]:float32" -> "[9,32] float32"
std::string kind_in(const std::string& entry) {
  std::string kind = entry.substr(std::min(entry.find('['), entry.size()));
  std::replace(kind.begin(), kind.end(), ':', ' ');
  return kind;
}

bool has(const Model& model, const std::string& name) {
  return std::any_of(model.entries.begin(), model.entries.end(),
                     [&](const auto& entry) { return name_in(entry.second) == name; });
}

// The first parameter that differs, in words; "" where it was not recorded.
std::string first_difference(const Model& a, const Model& b, const std::string& on_a,
                             const std::string& on_b) {
  for (const auto& [at, mine] : a.entries) {
    auto there = b.entries.find(at);
    if (there == b.entries.end()) {
      if (at < b.count) continue;  // not recorded
      return name_in(mine) + " " + kind_in(mine) + " exists on " + on_a + " only";
    }
    const std::string& theirs = there->second;
    if (mine == theirs) continue;
    if (name_in(mine) == name_in(theirs)) {
      return name_in(mine) + " is " + kind_in(mine) + " on " + on_a + " and " + kind_in(theirs) + " on " +
             on_b;
    }
    if (!has(b, name_in(mine))) return name_in(mine) + " " + kind_in(mine) + " exists on " + on_a + " only";
    if (!has(a, name_in(theirs)))
      return name_in(theirs) + " " + kind_in(theirs) + " exists on " + on_b + " only";
    return "they stand in another order: parameter " + std::to_string(at + 1) + " is " + name_in(mine) +
           " on " + on_a + " and " + name_in(theirs) + " on " + on_b;
  }
  for (const auto& [at, theirs] : b.entries) {
    if (at >= a.count) return name_in(theirs) + " " + kind_in(theirs) + " exists on " + on_b + " only";
  }
  return {};
}

bool is_frozen_only(const Model& a, const Model& b) {
  auto bare = [](const std::string& entry) { return entry.substr(0, entry.find(":frozen")); };
  return a.count == b.count && std::all_of(a.entries.begin(), a.entries.end(), [&](const auto& entry) {
           auto there = b.entries.find(entry.first);
           return there == b.entries.end() || bare(there->second) == bare(entry.second);
         });
}

Finding make_finding(const JobView& view, const DataParallelGroup& group, const std::string& key,
                     const std::vector<ValueSide>& sides) {
  Model most = model_of(view, *view.by_rank(sides[0].ranks[0]), key);
  Model other = model_of(view, *view.by_rank(sides[1].ranks[0]), key);
  std::string on_most = job::ranks_text(sides[0].ranks), on_other = job::ranks_text(sides[1].ranks);
  Finding f;
  f.type = "parameters-differ";
  f.severity = Severity::kError;
  f.certainty = f.class_certainty = Certainty::kProven;
  f.suspects = minority(sides);
  std::string first = first_difference(most, other, on_most, on_other);
  f.summary = "the models of " + on_other + " and " + on_most + " differ in structure";
  f.summary += first.empty() ? "; the first difference was not recorded" : ": " + first;
  std::vector<ValueSide> counts;
  for (const ValueSide& side : sides)
    counts.push_back({side.value.substr(0, side.value.find(' ')), side.ranks});
  f.evidence.push_back("parameters: " + sides_text(counts));
  f.evidence.push_back("noted when the framework took the model over, before its own broadcast");
  if (sides.size() > 2) f.evidence.push_back(std::to_string(sides.size()) + " different models in the group");
  if (is_frozen_only(most, other)) {
    f.fix.push_back(
        "Freeze the same parameters on every rank (requires_grad, LoRA targets, staged unfreezing): the "
        "gradients of "
        "the others are reduced with nobody's.");
  }
  f.fix.push_back(
      "Compute what the model's shape depends on (number of labels, vocabulary, LoRA targets, configuration "
      "file) "
      "once and send it to all ranks (torch.distributed.broadcast_object_list, or all_reduce with MAX) "
      "before the "
      "model is built.");
  f.fix.push_back(
      "Build the same model on every rank before deepspeed.initialize: it broadcasts values from rank 0 and "
      "takes equal "
      "names and shapes for granted.");
  std::uint64_t since = 0;
  for (const job::RankView* rank : group.ranks) since = std::max(since, fact_time(view, *rank, key));
  f.at = view.seconds(since);
  return f;
}

// What ranks wait for after such models were taken over follows from them.
void link(std::vector<Finding>& findings, std::size_t cause) {
  for (std::size_t i = 0; i < findings.size(); ++i) {
    Finding& f = findings[i];
    if (i == cause || f.consequence_of || f.severity < Severity::kError || f.type == "alloc-failed") continue;
    const std::vector<Rank>& mine = findings[cause].suspects;
    bool same = mine.empty() || f.suspects.empty() || std::any_of(mine.begin(), mine.end(), [&](Rank rank) {
                  return std::count(f.suspects.begin(), f.suspects.end(), rank) > 0;
                });
    if (same && f.at >= findings[cause].at - 1) f.consequence_of = cause;
  }
}

void run(Work& work) {
  const JobView& view = work.view;
  for (const DataParallelGroup& group : data_parallel_groups(view)) {
    for (int model = 1; model <= kMostModels; ++model) {
      std::string key = "parameters." + std::to_string(model);
      std::vector<std::pair<Rank, std::string>> values;
      for (const job::RankView* rank : group.ranks)
        values.emplace_back(rank->rank, fact_of(view, *rank, {key}));
      std::vector<ValueSide> sides = sides_of(values);
      if (sides.size() < 2) continue;
      work.findings.push_back(make_finding(view, group, key, sides));
      link(work.findings, work.findings.size() - 1);
      break;
    }
  }
}

}  // namespace

DSHANG_DETECTOR(112, "parameters-differ", run);

}  // namespace dshang::detect
