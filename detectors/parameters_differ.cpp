// parameters-differ: ranks gave the framework models of different structure, or train with different weights.
//
// Structure is what the probe noted when deepspeed.initialize took the model over, before anything was
// broadcast: names, shapes, types, and which parameters are frozen.  ZeRO-3 shards stand with the shape of
// the whole, experts are left out.  (DistributedDataParallel compares shapes itself.)  Values are a few
// elements of each replicated parameter, after the framework's broadcast and at the first training step;
// shards and experts are not compared, and a difference elsewhere in a large parameter is not seen.
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

// Of single parameters, by position: "values.<model>.<when>.<first>" = "<hash> <hash> ...".  Where nothing
// changed since the model was taken over, only that was noted.
std::vector<std::string> hashes_of(const JobView& view, const job::RankView& rank, const std::string& model,
                                   const std::string& when) {
  std::vector<std::string> hashes;
  for (const std::string& noted : {when, std::string("made")}) {
    std::string key = "values." + model + "." + noted;
    if (!hashes.empty() ||
        fact_of(view, rank, {key}) != fact_of(view, rank, {"values." + model + "." + when}))
      continue;
    for (;;) {
      std::string_view chunk = fact_of(view, rank, {key + "." + std::to_string(hashes.size())});
      if (chunk.empty()) break;
      while (!chunk.empty()) {
        std::string_view entry = chunk.substr(0, chunk.find(' '));
        hashes.emplace_back(entry);
        chunk.remove_prefix(std::min(chunk.size(), entry.size() + 1));
      }
    }
  }
  return hashes;
}

struct Changed {
  std::vector<std::string> names;  // as far as they were recorded
  std::size_t count = 0, of = 0;   // that differ, of those that were compared
};

Changed changed_between(const JobView& view, const job::RankView& a, const job::RankView& b,
                        const std::string& model, const std::string& when) {
  std::vector<std::string> mine = hashes_of(view, a, model, when), theirs = hashes_of(view, b, model, when);
  Model structure = model_of(view, a, model);
  Changed changed;
  for (std::size_t at = 0; at < std::min(mine.size(), theirs.size()); ++at) {
    if (mine[at] == "-" || theirs[at] == "-") continue;
    ++changed.of;
    if (mine[at] == theirs[at]) continue;
    ++changed.count;
    auto known = structure.entries.find(at);
    changed.names.push_back(known == structure.entries.end() ? "parameter " + std::to_string(at + 1)
                                                             : name_in(known->second));
  }
  return changed;
}

std::string names_text(const Changed& changed) {
  constexpr std::size_t kShown = 3;
  std::string text;
  for (std::size_t i = 0; i < changed.names.size() && i < kShown; ++i)
    text += (i ? ", " : "") + changed.names[i];
  return changed.count > kShown ? text + " and " + std::to_string(changed.count - kShown) + " more" : text;
}

void add_remedy(Finding& f, bool was_equal, bool of_engine) {
  std::string wrapper = of_engine ? "deepspeed.initialize" : "DistributedDataParallel";
  if (was_equal) {
    f.fix.push_back("Load and change weights before " + wrapper +
                    ": it sends those of rank 0 to all ranks, once. After it "
                    "nothing is sent any more.");
    f.fix.push_back(
        "Where it has to be later, do it on every rank, or on rank 0 and send them: for p in "
        "model.parameters(): "
        "torch.distributed.broadcast(p.data, 0). A condition on the rank, or another random seed on each "
        "rank, leaves "
        "each with its own.");
    if (of_engine) {
      f.fix.push_back(
          "engine.load_checkpoint(...) on all ranks instead of load_state_dict on the module: ZeRO's "
          "optimizer made its own "
          "fp32 copy in deepspeed.initialize, and writes that over what is loaded into the module later.");
    }
    return;
  }
  f.fix.push_back(of_engine ? "Let deepspeed.initialize broadcast: do not replace engine._broadcast_model, "
                              "and give it the process group "
                              "of all ranks that hold the same weights (mpu)."
                            : "Do not switch DistributedDataParallel's own broadcast off (init_sync=False, "
                              "parameters to ignore), or load "
                              "the same weights on every rank before it.");
}

// Ranks whose weights changed after the framework had made them equal; none if all of them did.
std::vector<Rank> changed_later(const JobView& view, const std::string& model,
                                const std::vector<ValueSide>& sides) {
  std::vector<Rank> changed;
  std::size_t all = 0;
  for (const ValueSide& side : sides) {
    all += side.ranks.size();
    const job::RankView& rank = *view.by_rank(side.ranks[0]);
    bool same = fact_of(view, rank, {"values." + model + ".made"}) == side.value;
    if (!same) changed.insert(changed.end(), side.ranks.begin(), side.ranks.end());
  }
  std::sort(changed.begin(), changed.end());
  return changed.size() < all ? changed : std::vector<Rank>{};
}

Finding values_finding(const JobView& view, const DataParallelGroup& group, const std::string& model,
                       bool was_equal, const std::string& when, const std::vector<ValueSide>& sides) {
  bool of_engine = model.starts_with("parameters.");
  const job::RankView& most = *view.by_rank(sides[0].ranks[0]);
  const job::RankView& other = *view.by_rank(sides[1].ranks[0]);
  Changed changed = changed_between(view, most, other, model, when);
  Finding f;
  f.type = "parameters-differ";
  f.subject = "values";
  f.severity = Severity::kError;
  f.certainty = f.class_certainty = Certainty::kProven;
  if (was_equal) f.suspects = changed_later(view, model, sides);
  if (f.suspects.empty()) f.suspects = minority(sides);
  f.summary = job::ranks_text(sides[1].ranks) + " and " + job::ranks_text(sides[0].ranks) +
              " begin training with different weights";
  if (changed.count) f.summary += ": " + names_text(changed);
  if (was_equal) {
    f.summary += "; they were changed after the framework had made them equal";
    if (!f.suspects.empty()) f.summary += ", on " + job::ranks_text(f.suspects);
  }
  if (changed.of) {
    f.evidence.push_back(std::to_string(changed.count) + " of " + std::to_string(changed.of) +
                         " replicated parameters differ, by a few elements of each");
  }
  if (sides.size() > 2)
    f.evidence.push_back(std::to_string(sides.size()) + " different sets of weights in the group");
  f.evidence.push_back(
      was_equal ? "equal on these ranks after the framework's own broadcast, different at the first "
                  "training step"
      : when == "made"
          ? "different directly after the framework had taken the model over, and still at the first "
            "training step"
          : "different at the first training step");
  f.evidence.push_back(
      "the ranks average gradients of different models: nothing fails, and the loss of each rank is that of "
      "its own model");
  add_remedy(f, was_equal, of_engine);
  std::uint64_t since = 0;
  for (const job::RankView* rank : group.ranks)
    since = std::max(since, fact_time(view, *rank, "values." + model + "." + when));
  f.at = view.seconds(since);
  return f;
}

// Sides of ranks whose values can be compared: of equal structure, and as many of them read.
std::vector<ValueSide> values_of(const JobView& view, const DataParallelGroup& group,
                                 const std::string& model, const std::string& when) {
  std::vector<std::pair<Rank, std::string>> structures, values;
  for (const job::RankView* rank : group.ranks) {
    const std::string& text = fact_of(view, *rank, {"values." + model + "." + when});
    structures.emplace_back(rank->rank, text.substr(0, text.rfind(' ')));
  }
  std::vector<ValueSide> comparable = sides_of(structures);
  if (comparable.empty()) return {};
  for (Rank rank : comparable[0].ranks)
    values.emplace_back(rank, fact_of(view, *view.by_rank(rank), {"values." + model + "." + when}));
  return sides_of(values);
}

void compare_values(Work& work, const DataParallelGroup& group, const std::string& model) {
  std::vector<ValueSide> made = values_of(work.view, group, model, "made");
  std::vector<ValueSide> begun = values_of(work.view, group, model, "begun");
  // Until the first step the program may make them alike itself.
  if (begun.size() < 2) return;
  bool differs_at_once = made.size() > 1;
  bool was_equal = made.size() == 1 && made[0].ranks.size() > 1;
  work.findings.push_back(values_finding(work.view, group, model, was_equal,
                                         differs_at_once ? "made" : "begun", differs_at_once ? made : begun));
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
      if (sides.size() < 2) {
        compare_values(work, group, key);
        compare_values(work, group, "wrapped." + std::to_string(model));
        continue;
      }
      work.findings.push_back(make_finding(view, group, key, sides));
      link(work.findings, work.findings.size() - 1);
      break;
    }
  }
}

}  // namespace

DSHANG_DETECTOR(112, "parameters-differ", run);

}  // namespace dshang::detect
