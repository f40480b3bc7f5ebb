// A checkpoint beside the job that is to go on from it.
#include <algorithm>
#include <map>
#include <regex>
#include <set>

#include "doctor/rule.h"

namespace dshang::doctor {
namespace {

// What the names in a tag's directory tell.
struct Shards {
  std::map<int, std::set<int>> optimizer;  // model-parallel rank -> data-parallel ranks
  std::map<int, std::set<int>> model;      // the same of stage 3's weights
  bool whole_weights = false;              // mp_rank_*_model_states.pt: stages 0 to 2

  bool any() const { return !optimizer.empty() || !model.empty() || whole_weights; }
};

// Below `tag`/; "" is the directory itself.
Shards shards_in(const Checkpoint& checkpoint, const std::string& tag) {
  static const std::regex optimizer(
      "(?:bf16_|fp16_)?zero_pp_rank_(\\d{1,7})_mp_rank_(\\d{1,7})_optim_states\\.pt");
  static const std::regex model("zero_pp_rank_(\\d{1,7})_mp_rank_(\\d{1,7})_model_states\\.pt");
  static const std::regex whole("mp_rank_\\d+_model_states\\.pt");
  Shards shards;
  std::string prefix = tag.empty() ? "" : tag + "/";
  for (const Checkpoint::File& file : checkpoint.files) {
    if (!file.path.starts_with(prefix)) continue;
    std::string name = file.path.substr(prefix.size());
    std::smatch parts;
    if (std::regex_match(name, parts, optimizer))
      shards.optimizer[std::stoi(parts[2])].insert(std::stoi(parts[1]));
    if (std::regex_match(name, parts, model)) shards.model[std::stoi(parts[2])].insert(std::stoi(parts[1]));
    if (std::regex_match(name, whole)) shards.whole_weights = true;
  }
  return shards;
}

bool has_folder(const Checkpoint& checkpoint, const std::string& tag) {
  for (const Checkpoint::File& file : checkpoint.files) {
    if (file.path.starts_with(tag + "/")) return true;
  }
  return false;
}

// Some of what is, or would be, below this folder could not be looked at.
bool closed(const Checkpoint& checkpoint, const std::string& folder) {
  return std::any_of(checkpoint.closed.begin(), checkpoint.closed.end(), [&](const std::string& one) {
    return folder.empty() || folder == one || folder.starts_with(one + "/") || one.starts_with(folder + "/");
  });
}

bool universal(const Facts& facts) {
  if (facts.load_universal) return *facts.load_universal;
  return facts.config && facts.config->readable() && facts.config->on("checkpoint.load_universal");
}

std::optional<int> stage_of_job(const Facts& facts) {
  if (facts.stage) return facts.stage;
  if (facts.config && facts.config->readable()) return facts.config->stage();
  return std::nullopt;
}

std::string numbers(const std::set<int>& all) {
  std::string text;
  for (int one : all) text += (text.empty() ? "" : ", ") + std::to_string(one);
  return text;
}

// Data-parallel ranks that must have a shard: up to the highest that has one, of weights or optimizer.
std::set<int> missing(const Shards& shards, int model_rank) {
  std::set<int> there, absent;
  auto of = [&](const std::map<int, std::set<int>>& all) {
    auto found = all.find(model_rank);
    return found == all.end() ? std::set<int>() : found->second;
  };
  std::set<int> optimizer = of(shards.optimizer), weights = of(shards.model);
  int last = -1;
  if (!optimizer.empty()) last = *optimizer.rbegin();
  if (!weights.empty()) last = std::max(last, *weights.rbegin());
  for (int rank = 0; rank <= last; ++rank) {
    bool no_optimizer = !optimizer.empty() && !optimizer.contains(rank);
    bool no_weights = !weights.empty() && !weights.contains(rank);
    if (no_optimizer || no_weights) absent.insert(rank);
  }
  return absent;
}

bool complete(const Shards& shards) {
  for (const auto& [rank, ranks] : shards.optimizer) {
    if (!missing(shards, rank).empty()) return false;
  }
  return true;
}

void incomplete(const Facts& facts, Hits& hits) {
  if (!facts.checkpoint) return;
  const Checkpoint& checkpoint = *facts.checkpoint;
  if (!checkpoint.latest) {
    if (checkpoint.latest_unread) return;
    if (shards_in(checkpoint, "").any())
      hits.add(checkpoint.path,
               "this is the directory of one tag; tools that merge shards want its parent, which has the "
               "file latest",
               "Name the parent directory.");
    return;
  }
  if (closed(checkpoint, *checkpoint.latest)) return;
  if (!has_folder(checkpoint, *checkpoint.latest))
    return hits.add(checkpoint.path + "/latest",
                    "latest names " + *checkpoint.latest + ", which is not there");
  Shards shards = shards_in(checkpoint, *checkpoint.latest);
  for (const auto& [rank, ranks] : shards.optimizer) {
    std::set<int> absent = missing(shards, rank);
    if (!absent.empty())
      hits.add(checkpoint.path + "/" + *checkpoint.latest,
               "shards of data-parallel rank " + numbers(absent) + " are missing");
  }
}

// Folders of this directory that are checkpoints with a latest of their own, as a Trainer makes them:
// checkpoint-500/latest.  Of several the last one that was made.
std::string checkpoint_below(const Checkpoint& checkpoint) {
  static const std::regex numbered("(.*?)(\\d{0,9})/latest");
  std::pair<int, std::string> last = {-2, ""};
  for (const Checkpoint::File& file : checkpoint.files) {
    std::smatch parts;
    if (!std::regex_match(file.path, parts, numbered)) continue;
    std::string folder = file.path.substr(0, file.path.rfind('/'));
    bool shards = std::any_of(checkpoint.files.begin(), checkpoint.files.end(), [&](const auto& one) {
      return one.path.starts_with(folder + "/") && one.path.ends_with("_states.pt");
    });
    int number = parts[2].length() ? std::stoi(parts[2]) : -1;
    if (shards) last = std::max(last, {number, folder});
  }
  return last.second;
}

void no_latest(const Facts& facts, Hits& hits) {
  if (!facts.checkpoint || facts.checkpoint->latest || facts.checkpoint->latest_unread ||
      shards_in(*facts.checkpoint, "").any() || closed(*facts.checkpoint, ""))
    return;
  std::string below = checkpoint_below(*facts.checkpoint);
  if (!below.empty())
    return hits.add(facts.checkpoint->path, "this is the folder above a checkpoint, which is " + below,
                    "Name that folder, or a listing of it, with --checkpoint.", Severity::kAdvice);
  if (universal(facts) && facts.checkpoint->latest_universal) return;
  bool of_deepspeed = false;
  for (const Checkpoint::File& file : facts.checkpoint->files)
    of_deepspeed |= file.path.ends_with("_states.pt");
  std::string what = of_deepspeed ? "there are shards, but no file latest"
                                  : "there is no DeepSpeed checkpoint and no file latest";
  hits.add(facts.checkpoint->path, what + ": load_checkpoint warns and training begins anew");
}

void universal_form(const Facts& facts, Hits& hits) {
  const Checkpoint& checkpoint = *facts.checkpoint;
  std::string tag = checkpoint.latest_universal.value_or(checkpoint.latest ? *checkpoint.latest : "");
  const std::string folder = tag.empty() ? "zero" : tag + "/zero";
  if (!closed(checkpoint, folder) && !has_folder(checkpoint, folder))
    hits.add(checkpoint.path, "the config loads a universal checkpoint, and there is none");
}

void changed_job(const Facts& facts, Hits& hits) {
  if (!facts.checkpoint) return;
  if (universal(facts)) return universal_form(facts, hits);
  if (!facts.checkpoint->latest) return;
  if (closed(*facts.checkpoint, *facts.checkpoint->latest)) return;
  std::string where = facts.checkpoint->path + "/" + *facts.checkpoint->latest;
  Shards shards = shards_in(*facts.checkpoint, *facts.checkpoint->latest);
  auto stage = stage_of_job(facts);
  bool saved_in_3 = !shards.model.empty();
  if (stage && shards.any() && saved_in_3 != (*stage == 3)) {
    return hits.add(where, std::string("the checkpoint is of ") +
                               (saved_in_3 ? "stage 3" : "stage 0, 1 or 2") + ", the job is of stage " +
                               std::to_string(*stage));
  }
  auto ranks = facts.data_parallel();
  if (!ranks || shards.optimizer.empty() || !complete(shards)) return;
  int saved = static_cast<int>(shards.optimizer.begin()->second.size());
  if (saved == *ranks) return;
  hits.add(where, "the checkpoint is of " + std::to_string(saved) + " data-parallel ranks, the job has " +
                      std::to_string(*ranks));
}

void other_optimizer(const Facts& facts, Hits& hits) {
  if (facts.checkpoint_optimizer.empty() || !facts.config || !facts.config->readable()) return;
  std::string saved = lower(facts.checkpoint_optimizer), now = facts.config->optimizer();
  if (now.empty() || saved == now || (saved != "muon" && now != "muon")) return;
  hits.add(facts.config->place("optimizer.type"),
           "the checkpoint was made with " + saved + ", the config has " + now);
}

}  // namespace

const Rules& checkpoint_rules() {
  static const Rules rules = {
      {"12.7-2", Area::kCheckpoint, Severity::kWillFail, "latest, names of shards",
       "a shard is missing, or the directory is not the one with latest", "a shard for every rank is needed",
       "Copy the missing files; python zero_to_fp32.py CHECKPOINT OUT merges a complete one.",
       "Expected N of '*_optim_states.pt' under … but found M files; Unable to find 'latest' file",
       incomplete},
      {"12.7-3", Area::kCheckpoint, Severity::kWrongResult, "the file latest", "it is missing",
       "without it load_checkpoint returns (None, None) with a warning only",
       "Write the tag's name into the file latest, or pass tag=; check that load_checkpoint's first value is "
       "not None.",
       "Unable to find latest file at …", no_latest},
      {"12.7-4", Area::kCheckpoint, Severity::kWillFail,
       "names of shards, ranks and stage of the job, checkpoint.load_universal",
       "another number of data-parallel ranks, or stage 3 against 0, 1, 2; load_universal without a "
       "universal checkpoint",
       "shards of the optimizer belong to one partitioning",
       "Make a universal checkpoint (python -m deepspeed.checkpoint.ds_to_universal) and set \"checkpoint\": "
       "{\"load_universal\": true}; "
       "for another stage load weights only.",
       "The checkpoint being loaded used a DP world size of …", changed_job},
      {"12.13-4", Area::kCheckpoint, Severity::kWillFail, "the checkpoint's and the config's optimizer",
       "Muon and another one", "another state and another grouping of the buffers",
       "Keep the optimizer, or load_checkpoint(load_optimizer_states=False).",
       "parameter-alignment layout does not match", other_optimizer},
  };
  return rules;
}

}  // namespace dshang::doctor
