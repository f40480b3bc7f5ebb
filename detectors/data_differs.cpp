// data-differs: ranks that train one model from data of different length, or from the same samples.
//
// Compared within a data-parallel group only: ranks of one tensor- or pipeline-parallel group read the same
// batches by design. Shapes are never compared, they vary from batch to batch.  A data set of another length
// whose loader has the same length is the rank's own part of the data and worth an `info`, unless a
// DistributedSampler divides what should be one data set.
#include <algorithm>
#include <map>
#include <set>

#include "detectors/known_facts.h"
#include "detectors/words.h"

namespace dshang::detect {
namespace {

constexpr std::size_t kEqualInARow = 3;
constexpr std::size_t kBatchesKept = 64;

std::string sampler_of(const JobView& view, const job::RankView& rank) {
  return fact_of(view, rank, {"loader.sampler"});
}

bool is_distributed(const std::string& sampler) { return sampler.find("Distributed") != std::string::npos; }

std::vector<ValueSide> lengths_of(const JobView& view, const DataParallelGroup& group,
                                  std::initializer_list<std::string_view> keys) {
  std::vector<std::pair<Rank, std::string>> values;
  for (const job::RankView* rank : group.ranks) {
    const std::string& text = fact_of(view, *rank, keys);
    if (number_of(text)) values.emplace_back(rank->rank, text);
  }
  return sides_of(values);
}

// The first step that the rank announced, 0 where it is not recorded any more.
std::int64_t first_announced(const job::RankView& rank) {
  const auto& visits = rank.records().visits;
  for (std::uint64_t n = visits.first(); n < visits.end() && visits.first() == 0; ++n) {
    const job::Visit& visit = visits.at(n);
    if (!visit.torn && visit.kind == flight::VisitKind::kStep && visit.step > 0) return visit.step;
    if (visit.kind == flight::VisitKind::kStep) break;
  }
  return 0;
}

// The step in which a rank with so many batches asks for one more.
std::int64_t stops_at(const JobView& view, const job::RankView& rank, std::int64_t batches) {
  std::int64_t accumulation = number_of(fact_of(view, rank, {"deepspeed.accumulation"})).value_or(1);
  std::int64_t first = number_of(fact_of(view, rank, {"loader.first_step"})).value_or(first_announced(rank));
  return first + batches / std::max<std::int64_t>(1, accumulation);
}

struct Stop {
  std::vector<Rank> ranks;
  std::int64_t batches = 0, step = 0;
};

std::vector<Stop> stops_of(const JobView& view, const std::vector<ValueSide>& sides) {
  std::vector<Stop> stops;
  for (const ValueSide& side : sides) {
    Stop stop{side.ranks, number_of(side.value).value_or(0), 0};
    stop.step = stops_at(view, *view.by_rank(side.ranks[0]), stop.batches);
    stops.push_back(std::move(stop));
  }
  std::stable_sort(stops.begin(), stops.end(),
                   [](const Stop& a, const Stop& b) { return a.batches < b.batches; });
  return stops;
}

// Whether all of these ranks have made steps beyond the last of the stops: the job begins its loader anew.
bool all_went_on(const DataParallelGroup& group, const std::vector<Stop>& stops) {
  return std::all_of(group.ranks.begin(), group.ranks.end(), [&](const job::RankView* rank) {
    return rank->records().step != job::kNoStep && rank->records().step > stops.back().step;
  });
}

std::uint64_t last_noted(const JobView& view, const DataParallelGroup& group,
                         std::initializer_list<std::string_view> keys) {
  std::uint64_t newest = 0;
  for (const job::RankView* rank : group.ranks) {
    for (std::string_view key : keys) newest = std::max(newest, fact_time(view, *rank, key));
  }
  return newest;
}

std::string group_text(const DataParallelGroup& group) {
  std::vector<Rank> ranks;
  for (const job::RankView* rank : group.ranks) ranks.push_back(rank->rank);
  return group.known ? "data-parallel " + job::ranks_text(ranks) + " (as the framework groups them)"
                     : "all " + job::ranks_text(ranks) + " (the job has no smaller communicator)";
}

std::string loader_fix(const std::string& sampler) {
  return is_distributed(sampler) ? "Give DistributedSampler the same data set on every rank (same files, "
                                   "same filtering, same order) and "
                                   "`drop_last=True`; it gives each rank equally many samples of it."
                                 : "Divide one data set with torch.utils.data.DistributedSampler(dataset, "
                                   "drop_last=True), or pass it as "
                                   "`training_data` to deepspeed.initialize, which does: every rank then has "
                                   "equally many batches.";
}

void lengths(Work& work, const DataParallelGroup& group) {
  const JobView& view = work.view;
  bool sure = group.known || std::all_of(group.ranks.begin(), group.ranks.end(),
                                         [](const job::RankView* rank) { return finished_a_step(*rank); });
  if (!sure) return;
  std::vector<ValueSide> loaders = lengths_of(view, group, {"loader.length", "loader_length"});
  std::vector<ValueSide> data = lengths_of(view, group, {"dataset.length", "dataset_length"});
  bool uneven = std::any_of(group.ranks.begin(), group.ranks.end(), [&](const job::RankView* rank) {
    return !fact_of(view, *rank, {"data.uneven"}).empty();  // the job makes up for the missing batches
  });
  if (uneven) loaders.clear();
  if (loaders.size() < 2 && (data.size() < 2 || uneven)) return;
  Finding f;
  f.type = "data-differs";
  f.subject = "length";
  f.severity = Severity::kWarning;
  f.certainty = f.class_certainty = Certainty::kProven;
  std::string sampler = sampler_of(view, *group.ranks[0]);
  if (loaders.size() > 1) {
    std::vector<Stop> stops = stops_of(view, loaders);
    f.suspects = minority(loaders);
    for (std::size_t i = 0; i < stops.size() && i < 3; ++i) {
      std::string who = i > 0 && i + 1 == stops.size() ? "the others" : job::ranks_text(stops[i].ranks);
      f.summary +=
          (i ? ", " : "") + who + (i ? "" : " will stop") + " at step " + std::to_string(stops[i].step);
    }
    if (stops.front().step == stops.back().step) {
      f.summary = job::ranks_text(stops[0].ranks) + " will run out of batches in step " +
                  std::to_string(stops[0].step) + ", before the others";
    }
    f.summary += ": their loaders differ in length (" + sides_text(loaders, "batches") + ")";
    f.step = stops.front().step;
    f.evidence.push_back("ranks that stop first leave the others waiting in their next collective of " +
                         group_text(group));
    if (all_went_on(group, stops)) {
      f.severity = Severity::kInfo;
      f.evidence.push_back(
          "all of them have made steps beyond that: the job begins its loader anew, or pads it");
    }
    f.at = view.seconds(last_noted(view, group, {"loader.length", "loader_length"}));
  } else {
    bool divided = is_distributed(sampler);
    f.severity = divided || loaders.empty() ? Severity::kWarning : Severity::kInfo;
    f.suspects = minority(data);
    f.summary = "data sets differ in length: " + sides_text(data, "samples");
    f.summary += divided ? "; the DistributedSampler of each rank divides another one" : "";
    f.evidence.push_back(group_text(group));
    f.at = view.seconds(last_noted(view, group, {"dataset.length", "dataset_length"}));
  }
  if (loaders.size() > 1 && data.size() > 1) f.evidence.push_back("data set: " + sides_text(data, "samples"));
  if (!sampler.empty()) f.evidence.push_back("sampler: " + sampler);
  f.fix = {loader_fix(sampler),
           "Or stop all ranks together: all-reduce (MIN) a `has_batch` flag before each step."};
  work.findings.push_back(std::move(f));
}

// Hashes of the first batches of a rank, up to the first one that is not known.
std::vector<std::string> batches_of(const JobView& view, const job::RankView& rank) {
  std::vector<std::string> hashes;
  while (hashes.size() < kBatchesKept) {
    const std::string& text = fact_of(view, rank, {"batch." + std::to_string(hashes.size())});
    std::string hash = text.substr(0, text.find(' '));
    if (hash.empty() || hash == "unread") break;
    hashes.push_back(std::move(hash));
  }
  return hashes;
}

struct EqualBatches {
  std::vector<Rank> ranks;
  std::size_t first = 0;
};

// The largest set of ranks whose batches are equal kEqualInARow times in a row, while they change from one to
// the next (the same batch over and over is a benchmark).
std::optional<EqualBatches> equal_batches(const JobView& view, const DataParallelGroup& group) {
  std::vector<std::vector<std::string>> batches;
  std::size_t most = 0;
  for (const job::RankView* rank : group.ranks) {
    batches.push_back(batches_of(view, *rank));
    most = std::max(most, batches.back().size());
  }
  std::optional<EqualBatches> found;
  for (std::size_t first = 0; first + kEqualInARow <= most; ++first) {
    std::map<std::string, std::vector<Rank>> by_content;
    for (std::size_t i = 0; i < batches.size(); ++i) {
      if (batches[i].size() < first + kEqualInARow) continue;
      std::string content;
      bool changes = true;
      for (std::size_t n = first; n < first + kEqualInARow; ++n) {
        content += batches[i][n] + " ";
        changes = changes && (n == first || batches[i][n] != batches[i][n - 1]);
      }
      if (changes) by_content[content].push_back(group.ranks[i]->rank);
    }
    for (const auto& [content, ranks] : by_content) {
      if (ranks.size() > 1 && (!found || ranks.size() > found->ranks.size()))
        found = EqualBatches{ranks, first};
    }
  }
  return found;
}

std::string why_equal(const std::string& sampler) {
  if (sampler.find("InfiniteConstant") != std::string::npos)
    return "the iterable data set is not divided by rank";
  if (is_distributed(sampler)) return "the sampler has the same rank on all of them: " + sampler;
  return "no DistributedSampler" + (sampler.empty() ? "" : ", but " + sampler.substr(0, sampler.find(' '))) +
         ", which gives every rank the same samples";
}

// The sampler knows that these are different ranks: then the data itself repeats (several answers to one
// prompt).
bool divided_by_rank(const JobView& view, const std::vector<Rank>& ranks) {
  std::set<std::string> samplers;
  for (Rank rank : ranks) {
    std::string sampler = sampler_of(view, *view.by_rank(rank));
    bool counts = sampler.find(" rank=") != sampler.npos || sampler.find(" process_index=") != sampler.npos;
    if (!counts || !samplers.insert(sampler).second) return false;
  }
  return true;
}

void equal(Work& work, const DataParallelGroup& group) {
  if (!group.known) return;  // without its group a tensor-parallel job looks alike
  const JobView& view = work.view;
  std::optional<EqualBatches> found = equal_batches(view, group);
  if (!found) return;
  if (divided_by_rank(view, found->ranks)) return;
  const job::RankView& one = *view.by_rank(found->ranks[0]);
  std::string sampler = sampler_of(view, one);
  std::string key = "batch." + std::to_string(found->first);
  const std::string& batch = fact_of(view, one, {key});
  Finding f;
  f.type = "data-differs";
  f.subject = "content";
  f.severity = Severity::kWarning;
  f.summary = job::ranks_text(found->ranks) + " train on the same batches: " + why_equal(sampler);
  f.step = number_of(fact_of(view, one, {"loader.first_step"}));
  f.evidence.push_back("batches " + std::to_string(found->first) + " to " +
                       std::to_string(found->first + kEqualInARow - 1) + " have equal content (judged by " +
                       std::to_string(kEqualInARow) + " equal batches in a row)");
  if (std::size_t space = batch.find(' '); space != batch.npos)
    f.evidence.push_back("a batch:" + batch.substr(space));
  f.evidence.push_back(group_text(group));
  f.fix = {
      "Give the DataLoader sampler=DistributedSampler(dataset, num_replicas=dist.get_world_size(), "
      "rank=dist.get_rank(), "
      "shuffle=True, drop_last=True) in place of shuffle=True, and call sampler.set_epoch(epoch) before each "
      "epoch.",
      "With DeepSpeed: pass the data set as `training_data` to deepspeed.initialize, its DeepSpeedDataLoader "
      "samples by rank. For "
      "an iterable data set: datasets.distributed.split_dataset_by_node(dataset, rank, world_size).",
  };
  f.at = view.seconds(last_noted(view, group, {"batch." + std::to_string(found->first + kEqualInARow - 1)}));
  work.findings.push_back(std::move(f));
}

void run(Work& work) {
  for (const DataParallelGroup& group : data_parallel_groups(work.view)) {
    lengths(work, group);
    equal(work, group);
  }
}

}  // namespace

DSHANG_DETECTOR(111, "data-differs", run);

}  // namespace dshang::detect
