#include "detectors/memory_plan.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <string_view>

#include "detectors/known_facts.h"
#include "detectors/words.h"

namespace dshang::detect {
namespace {

constexpr double kRoom = 0.95;  // of the device that may be planned for: allocators lose some

bool was_recomputed(const JobView& view, const job::RankView& rank) {
  const auto& visits = rank.records().visits;
  for (std::uint64_t n = visits.first(); n < visits.end(); ++n) {
    const job::Visit& visit = visits.at(n);
    if (!visit.torn && visit.phase && view.names().text(visit.phase) == "recompute") return true;
  }
  return false;
}

std::uint64_t shared(std::uint64_t bytes, bool is_sharded, std::uint64_t ranks) {
  return is_sharded ? bytes / std::max<std::uint64_t>(1, ranks) : bytes;
}

}  // namespace

MemorySettings memory_settings(const JobView& view, const job::RankView& rank) {
  MemorySettings settings;
  std::istringstream size(fact_of(view, rank, {"model.size"}));
  size >> settings.parameters >> settings.trained >> settings.bytes;
  std::istringstream members(fact_of(view, rank, {"data_parallel.ranks"}));
  std::uint64_t ranks = 0;
  for (std::string word; members >> word;) ++ranks;
  settings.ranks = ranks ? ranks : static_cast<std::uint64_t>(std::max(1, view.world_size));
  std::istringstream texts(fact_of(view, rank, {"deepspeed.memory"}));
  for (std::string word; texts >> word;) {
    std::size_t equals = word.find('=');
    if (equals == word.npos) continue;
    std::string key = word.substr(0, equals), value = word.substr(equals + 1);
    if (key == "stage") settings.stage = static_cast<int>(std::strtol(value.c_str(), nullptr, 10));
    if (key == "micro_batch") settings.micro_batch = std::strtoull(value.c_str(), nullptr, 10);
    if (key == "dtype") settings.half = true;
    if (key == "offload_optimizer" && value != "none") settings.offload_optimizer = value;
    if (key == "offload_param" && value != "none") settings.offload_param = value;
    if (key == "offload_param.max_in_cpu") settings.max_in_cpu = value;
    if (key == "offload_param.disk" || key == "offload_optimizer.disk") settings.disk = value;
    if (key == "gather_16bit") settings.gather_16bit = value == "True";
    if (key == "checkpointing_block") settings.checkpointing_block = value == "True";
  }
  if (settings.stage < 0 && settings.parameters) settings.half = settings.bytes < 3 * settings.parameters;
  settings.recomputes = was_recomputed(view, rank);
  return settings;
}

std::string nvme_text(const MemorySettings& s) {
  if (!s.offloads_to_nvme()) return "";
  constexpr std::string_view kNone = "no_disk_of_this_machine", kRotating = ",rotating";
  std::string where = s.disk, remark = ", which is no NVMe drive: slow";
  if (where.find("nvme") == 0) remark = "";
  if (std::size_t at = where.find(kRotating); at != where.npos)
    where.replace(at, kRotating.size(), " (rotating)");
  if (where == kNone)
    where = "no disk of this machine (memory, a network, or a container's layers)",
    remark = ": it may fill the memory that it should spare";
  if (where.empty()) where = "a path of an unknown kind", remark = "";
  return "what is offloaded goes to " + where + remark +
         (s.max_in_cpu.empty() ? "" : "; max_in_cpu " + s.max_in_cpu + " parameters");
}

ModelParts parts_of(const MemorySettings& s) {
  ModelParts parts;
  if (s.stage < 0) {  // plain torch: everything in the type of the weights
    parts.weights = s.bytes;
    parts.gradients = s.parameters ? static_cast<std::uint64_t>(static_cast<double>(s.bytes) *
                                                                static_cast<double>(s.trained) /
                                                                static_cast<double>(s.parameters))
                                   : 0;
    parts.optimizer = 2 * parts.gradients;
    return parts;
  }
  std::uint64_t each = s.half ? 2 : 4;
  parts.weights = shared(each * s.parameters, s.stage >= 3, s.ranks);
  parts.gradients = shared(each * s.trained, s.stage >= 2, s.ranks);
  parts.optimizer = shared((s.half ? 12 : 8) * s.trained, s.stage >= 1, s.ranks);
  if (!s.offload_optimizer.empty()) parts.optimizer = 0, parts.gradients = s.stage >= 2 ? 0 : parts.gradients;
  if (!s.offload_param.empty() && s.stage >= 3) parts.weights = 0;
  return parts;
}

std::string parts_text(const ModelParts& parts) {
  auto part = [](const char* name, std::uint64_t bytes) {
    return std::string(name) + " " + (bytes ? bytes_text(bytes) : "none on the device");
  };
  return part("weights", parts.weights) + ", " + part("gradients", parts.gradients) + ", " +
         part("optimizer", parts.optimizer);
}

std::vector<std::string> ways_to_fit(const MemorySettings& s, const Need& need) {
  struct Way {
    std::string text;
    bool fits;
  };
  std::vector<Way> ways;  // what costs least first
  std::uint64_t now = parts_of(s).all() + need.activations + need.other, fixed = now - need.activations;
  auto room = static_cast<std::uint64_t>(kRoom * static_cast<double>(need.total));
  auto add = [&](const std::string& what, std::uint64_t after) {
    if (after >= now) return;
    ways.push_back({what + ": about " + bytes_text(now - after) + " less; " +
                        (after <= room ? "fits (" : "does not fit alone (") + bytes_text(after) + " of " +
                        bytes_text(need.total) + ")",
                    after <= room});
  };
  auto add_settings = [&](const std::string& what, const MemorySettings& changed) {
    add(what, parts_of(changed).all() + need.activations + need.other);
  };
  if (!s.recomputes && need.activations > 0 && fixed < room && room - fixed < need.activations)
    ways.push_back({"activation checkpointing: fits if no more than " +
                        std::to_string(100 * (room - fixed) / need.activations) + " % of the " +
                        bytes_text(need.activations) +
                        " of activations stay (of L equal blocks about one, and the inputs of all)",
                    true});
  if (s.parameters && !s.half) add("bf16 instead of fp32 (half the activations)", now - need.activations / 2);
  MemorySettings sharded = s;
  sharded.stage = 3;
  std::string over = " over " + std::to_string(s.ranks) + " ranks)";
  if (s.ranks > 1 && s.stage < 3)
    add_settings(s.stage < 0
                     ? "ZeRO stage 3 or FSDP (weights, gradients and optimizer" + over
                     : "ZeRO stage 3 instead of " + std::to_string(s.stage) + " (the weights, too," + over,
                 sharded);
  if (s.micro_batch > 1)
    add("micro-batch " + std::to_string(s.micro_batch / 2) + " instead of " + std::to_string(s.micro_batch) +
            ", with twice the gradient accumulation",
        now - need.activations / 2);
  else if (s.micro_batch == 0)
    add("half the batch, with twice the gradient accumulation", now - need.activations / 2);
  MemorySettings off = s;
  off.offload_optimizer = "cpu";
  if (s.stage >= 1 && s.offload_optimizer.empty())
    add_settings("`offload_optimizer: {\"device\": \"cpu\"}` (costs host memory and time)", off);
  std::stable_sort(ways.begin(), ways.end(), [](const Way& a, const Way& b) { return a.fits > b.fits; });
  std::vector<std::string> lines;
  for (const Way& way : ways) {
    if (way.fits || !ways.front().fits) lines.push_back(way.text);
  }
  return lines;
}

}  // namespace dshang::detect
