#include "detectors/host_memory_end.h"

#include "core/job/token.h"
#include "detectors/memory_plan.h"
#include "detectors/memory_use.h"
#include "detectors/words.h"

namespace dshang::detect {
namespace {

bool decides(const std::string& phase) { return job::is_side_phase(phase) || phase == "init"; }

// The phase in which the rank was last, of those that were pushed and not popped: a save or the like, which
// gathers weights within it, else the innermost.
std::string last_phase(const JobView& view, const job::RankView& rank) {
  const auto& visits = rank.records().visits;
  std::string last;
  std::size_t popped = 0;
  for (std::uint64_t n = visits.end(); n-- > visits.first();) {
    const job::Visit& visit = visits.at(n);
    if (visit.torn) continue;
    if (visit.kind == flight::VisitKind::kPhasePop) ++popped;
    if (visit.kind != flight::VisitKind::kPhasePush) continue;
    if (popped > 0) {
      --popped;
      continue;
    }
    const std::string& phase = view.names().text(visit.phase);
    if (decides(phase)) return phase;
    if (last.empty()) last = phase;
  }
  return last;
}

// What is offloaded and what NVMe offload keeps in host memory, with the numbers that are known.
std::string fix_of_offload(const MemorySettings& s) {
  if (s.offload_optimizer.empty() && s.offload_param.empty()) return "";
  std::uint64_t host = 0;
  if (s.offload_optimizer == "cpu") host += 16 * s.trained / s.ranks;
  if (s.offload_param == "cpu") host += 2 * s.parameters / s.ranks;
  std::string each = host ? ": about " + bytes_text(host) + " a rank, times the ranks of this node" : "";
  if (!s.offloads_to_nvme())
    return "The configuration offloads to the host" + each +
           ". Offload less, to NVMe, or over more nodes; pinned memory (`pin_memory`) cannot be swapped.";
  return (host ? "A part is offloaded to the host" + each + ". " : std::string()) +
         "Offload to NVMe takes host memory, too: `max_in_cpu` parameters of each rank stay there, and "
         "`buffer_count` buffers of `buffer_size` are pinned. Lower these" +
         (s.disk.find("nvme") == 0
              ? "."
              : ", and let `nvme_path` lie on a local NVMe drive (`lsblk`): in /dev/shm, /tmp of many "
                "containers and the like it takes the same memory.");
}

}  // namespace

std::vector<std::string> evidence_of_host_memory(const JobView& view, const Ended& ended) {
  const job::Death& death = ended.death;
  std::vector<std::string> lines;
  lines.push_back("the kernel's OOM killer ended " + std::to_string(death.oom_kills) +
                  (death.oom_kills == 1 ? " process" : " processes") +
                  (death.limit_is_of_group ? " of its control group" : " of this control group or machine") +
                  " just then: it is host memory that ran out, not the device's");
  std::string had = host_memory_text(*ended.rank);
  if (death.memory_limit)
    had += (had.empty() ? "" : "; ") +
           std::string(death.limit_is_of_group ? "its control group may use " : "the machine has ") +
           bytes_text(death.memory_limit) + (death.limit_is_of_group ? "" : " in all");
  if (!had.empty()) lines.push_back("host memory: " + had);
  std::string others;
  for (const job::RankView& rank : view.ranks) {
    std::string text = rank.rank == ended.rank->rank ? "" : host_memory_text(rank);
    if (!text.empty() && others.size() < 200)
      others += (others.empty() ? "" : "; ") + std::string("rank ") + std::to_string(rank.rank) + " " + text;
  }
  if (!others.empty()) lines.push_back("of the others: " + others);
  if (std::string phase = last_phase(view, *ended.rank); !phase.empty())
    lines.push_back("it was in phase " + phase);
  if (std::string text = nvme_text(memory_settings(view, *ended.rank)); !text.empty())
    lines.push_back(std::move(text));
  return lines;
}

std::vector<std::string> fixes_of_host_memory(const JobView& view, const Ended& ended) {
  MemorySettings settings = memory_settings(view, *ended.rank);
  std::string phase = last_phase(view, *ended.rank);
  std::vector<std::string> fixes;
  if (phase == "save") {
    std::string whole =
        settings.parameters ? " (about " + bytes_text(2 * settings.parameters) + " here)" : "";
    fixes.push_back(
        "save_16bit_model, and save_checkpoint with stage3_gather_16bit_weights_on_model_save, gather the "
        "whole model" +
        whole +
        " in the host memory of rank 0: give its node or container that much more, "
        "or save sharded and put the shards together afterwards (zero_to_fp32.py).");
  }
  if (phase == "load" || phase == "init")
    fixes.push_back(
        "Every rank that loads the whole checkpoint holds it once: build the model under "
        "`deepspeed.zero.Init` (or on the `meta` device), load with `mmap=True`, or one rank after the "
        "other.");
  if (std::string text = fix_of_offload(settings); !text.empty()) fixes.push_back(std::move(text));
  fixes.push_back(
      "Look for what fills host memory: data-loader workers (`num_workers` times what each keeps, on every "
      "rank), a data set held in Python lists, tensors kept on the CPU.");
  fixes.push_back("The other ranks cannot recover: stop the job and restart from the last checkpoint.");
  return fixes;
}

}  // namespace dshang::detect
