// facts-differ: ranks of one job run with different versions, another configuration or another idea of its
// size.
//
// A closed list: what may differ by design (seeds, devices, host names, network variables) is never compared.
// Paths in a configuration may differ too; the probe leaves them out of its hash.  Whether a difference does
// harm is not known: mixed versions may work for a long time.
#include <algorithm>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "detectors/known_facts.h"
#include "detectors/words.h"

namespace dshang::detect {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kKeysShown = 3;

struct Compared {
  std::string_view key, other_key;
  const char* name;
};
constexpr Compared kCompared[] = {
    {"version.torch", "torch_version", "version of torch"},
    {"version.deepspeed", "deepspeed_version", "version of DeepSpeed"},
    {"version.nccl", "nccl_version", "version of NCCL"},
    {"version.nccl_of_torch", "", "version of NCCL that torch names"},
    {"version.cuda_runtime", "cuda_runtime_version", "version of the CUDA runtime"},
    {"version.cuda", "cuda_version", "version of CUDA that torch was built with"},
    {"version.cuda_driver", "cuda_driver_version", "version of CUDA that the driver offers"},
    {"version.driver", "driver_version", "version of the NVIDIA driver"},
};
constexpr int kMostEngines = 8;  // of one process: actor, critic, reference, ...

struct Difference {
  std::string what;
  std::vector<ValueSide> sides;
  std::string fix;
  std::uint64_t time_ns = 0;
  std::string text;  // what differs; empty: the sides say it
};

template <typename Value>
std::vector<ValueSide> compare(const JobView& view, Value value) {
  std::vector<std::pair<Rank, std::string>> values;
  for (const job::RankView* rank : real_ranks(view)) values.emplace_back(rank->rank, value(*rank));
  return sides_of(values);
}

std::uint64_t known_since(const JobView& view, std::string_view key) {
  std::uint64_t newest = 0;
  for (const job::RankView* rank : real_ranks(view)) newest = std::max(newest, fact_time(view, *rank, key));
  return newest;
}

// As the probe leaves them out of the hash (probe/dshang_probe/facts.py).
bool is_place(const std::string& key, const Json& value) {
  std::string lower = key;
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return value.is_string() && (lower.ends_with("path") || lower.ends_with("dir") ||
                               lower.ends_with("folder") || lower.ends_with("file"));
}

void flatten(const Json& value, const std::string& path, std::map<std::string, std::string>& out) {
  if (!value.is_object()) {
    out[path] = value.dump(-1, ' ', false, Json::error_handler_t::replace);
    return;
  }
  for (const auto& [key, part] : value.items()) {
    if (!is_place(key, part)) flatten(part, path.empty() ? key : path + "." + key, out);
  }
}

// "zero_optimization.stage is 2 on rank 1 and 3 on ranks 0, 2, 3"; "" where a configuration was too long to
// be recorded.
std::string config_difference(const JobView& view, const std::string& key_of_text,
                              const std::vector<ValueSide>& sides) {
  std::map<std::string, std::string> left, right;
  for (auto [side, out] : {std::pair{0, &left}, std::pair{1, &right}}) {
    const job::RankView* rank = view.by_rank(sides[static_cast<std::size_t>(side)].ranks[0]);
    Json config = Json::parse(whole_fact_of(view, *rank, key_of_text), nullptr, false);
    if (config.is_discarded()) return {};
    flatten(config, "", *out);
  }
  std::set<std::string> keys;
  for (const auto& [key, value] : left) keys.insert(key);
  for (const auto& [key, value] : right) keys.insert(key);
  std::string text;
  std::size_t differing = 0;
  for (const std::string& key : keys) {
    auto mine = left.find(key), theirs = right.find(key);
    std::string a = mine == left.end() ? "not set" : mine->second,
                b = theirs == right.end() ? "not set" : theirs->second;
    if (a == b || ++differing > kKeysShown) continue;
    text += (text.empty() ? "" : "; ") + key + " is " + a + " on " + job::ranks_text(sides[0].ranks) +
            " and " + b + " on " + job::ranks_text(sides[1].ranks);
  }
  if (differing > kKeysShown) text += "; " + std::to_string(differing - kKeysShown) + " more keys differ";
  return text;
}

std::vector<Difference> differences(const JobView& view) {
  std::vector<Difference> found;
  for (const Compared& c : kCompared) {
    std::vector<ValueSide> sides = compare(view, [&](const job::RankView& rank) {
      return fact_of(view, rank, {c.key, c.other_key});
    });
    if (sides.size() < 2) continue;
    std::string most = minority(sides).empty() ? "" : " (most ranks have " + sides[0].value + ")";
    std::string fix = std::string("Give all nodes the same ") + c.name + most +
                      ": the same container image or environment.";
    found.push_back({c.name, std::move(sides), std::move(fix),
                     std::max(known_since(view, c.key), known_since(view, c.other_key)), ""});
  }
  for (int engine = 1; engine <= kMostEngines; ++engine) {
    std::string ending = engine == 1 ? "" : "." + std::to_string(engine);
    std::string key = "deepspeed.config.hash" + ending;
    std::vector<ValueSide> sides =
        compare(view, [&](const job::RankView& rank) { return fact_of(view, rank, {key}); });
    if (sides.size() < 2) continue;
    std::string what = "ds_config" + (engine == 1 ? "" : " of engine " + std::to_string(engine));
    std::string keys = config_difference(view, "deepspeed.config" + ending, sides);
    if (keys.empty())
      keys = "hash of its content is " + sides_text(sides) + "; it is too long to be recorded whole";
    found.push_back({what, std::move(sides),
                     "Give deepspeed.initialize the same `config` on every rank: one ds_config file that all "
                     "nodes read (shared "
                     "storage, or copied by the launcher), and nothing in it that is computed from the rank.",
                     known_since(view, key), std::move(keys)});
  }
  std::vector<ValueSide> sizes = compare(view, [&](const job::RankView& rank) {
    std::int32_t size = rank.records().world_size;
    return size > 0 ? std::to_string(size) : std::string();
  });
  if (sizes.size() > 1) {
    found.push_back({"world size", std::move(sizes),
                     "Start all nodes with the same number of nodes and processes per node (WORLD_SIZE): a "
                     "hostfile, or a "
                     "launcher's --nnodes and --nproc_per_node, differs.",
                     0, ""});
  }
  return found;
}

void run(Work& work) {
  const JobView& view = work.view;
  std::vector<Difference> found = differences(view);
  if (found.empty()) return;
  Finding f;
  f.type = "facts-differ";
  f.severity = Severity::kWarning;
  f.certainty = f.class_certainty = Certainty::kProven;
  std::set<Rank> suspects;
  std::uint64_t since = 0;
  for (const Difference& d : found) {
    f.summary += (f.summary.empty() ? "ranks differ in " : ", ") + d.what;
    f.evidence.push_back(d.what + ": " + (d.text.empty() ? sides_text(d.sides) : d.text));
    f.fix.push_back(d.fix);
    for (Rank rank : minority(d.sides)) suspects.insert(rank);
    since = since ? std::min(since, d.time_ns) : d.time_ns;
  }
  f.summary += ": " + f.evidence[0].substr(found[0].what.size() + 2);
  f.suspects.assign(suspects.begin(), suspects.end());
  f.at = view.seconds(since);
  work.findings.push_back(std::move(f));
}

}  // namespace

DSHANG_DETECTOR(110, "facts-differ", run);

}  // namespace dshang::detect
