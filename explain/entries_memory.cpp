// Memory of GPU and host.
#include <algorithm>

#include "explain/hits.h"
#include "explain/words.h"

namespace dshang::explain {
namespace {

constexpr std::uint64_t kManySteps = 50;

using Ranks = std::map<Speaker, Sighting>;

Hits::Hit merged(const Ranks& ranks) {
  Hits::Hit hit;
  hit.count = 0;
  for (const auto& [who, sighting] : ranks) {
    if (hit.count == 0 || sighting.first < hit.place) {
      hit.place = sighting.first;
      hit.text = sighting.text;
    }
    hit.speakers.insert(who);
    hit.count += sighting.count;
  }
  return hit;
}

std::uint64_t progress(const Observed& seen) {
  std::uint64_t least = UINT64_MAX;
  for (const auto& [who, sighting] : seen.out_of_memory) least = std::min(least, sighting.progress);
  // Logs of single ranks: another one's may tell the steps.
  return least == 0 && seen.files.size() > 1 ? seen.numbers.progress() : least;
}

// Whether others have lines in the log, or must be there, and ran out of nothing.
bool on_one_rank(const Observed& seen) {
  if (seen.out_of_memory.size() != 1) return false;
  const Speaker& who = seen.out_of_memory.begin()->first;
  if (who.rank < 0) return false;
  // Ended by the launcher, the others may only have been slower, unless they are known to have waited.  In
  // one of the first steps, which all had done before, the load of one differs.
  bool slower = seen.others_ended && seen.watchdog.reports().empty();
  if (slower && (!progress(seen) || progress(seen) >= kManySteps)) return false;
  bool others = std::any_of(seen.speakers.begin(), seen.speakers.end(), [&](const Speaker& one) {
    return one.rank != who.rank && one.local == who.local;
  });
  return others || std::max(seen.world_size, seen.least_ranks) > 1;
}

bool saving(const Observed& seen) {
  return !seen.out_of_memory_in_save.empty() && seen.out_of_memory.empty();
}
bool with_nvme(const Observed& seen) { return seen.config_has_nvme; }

void first_step(const Entry&, const Observed& seen, Hits& hits) {
  if (seen.out_of_memory.empty() || on_one_rank(seen) || with_nvme(seen) || progress(seen) >= kManySteps)
    return;
  Hits::Hit hit = merged(seen.out_of_memory);
  if (progress(seen))
    hit.summary = "a GPU ran out of memory in step " + std::to_string(progress(seen)) + " or the next";
  hits.add(hit);
}

void many_steps(const Entry&, const Observed& seen, Hits& hits) {
  if (seen.out_of_memory.empty() || on_one_rank(seen) || with_nvme(seen) || progress(seen) < kManySteps)
    return;
  Hits::Hit hit = merged(seen.out_of_memory);
  hit.summary = "a GPU ran out of memory after " + std::to_string(progress(seen)) + " steps";
  hits.add(hit);
}

void in_save(const Entry&, const Observed& seen, Hits& hits) {
  if (saving(seen) && !with_nvme(seen)) hits.add(merged(seen.out_of_memory_in_save));
}

void one_rank(const Entry&, const Observed& seen, Hits& hits) {
  if (!on_one_rank(seen) || with_nvme(seen)) return;
  Hits::Hit hit = merged(seen.out_of_memory);
  hit.summary = "one GPU of several ran out of memory";
  if (progress(seen)) hit.summary += ", after " + std::to_string(progress(seen)) + " steps";
  hits.add(hit);
}

void nvme(const Entry&, const Observed& seen, Hits& hits) {
  if (!with_nvme(seen)) return;
  const Sighting* killed = seen.sighting("X-01");
  const Ranks& ranks = saving(seen) ? seen.out_of_memory_in_save : seen.out_of_memory;
  if (!ranks.empty()) return hits.add(merged(ranks));
  if (killed)
    hits.add(*killed, "a rank of a job with NVMe offload was killed, most likely for want of host memory");
}

void flushes(const Entry& entry, const Observed& seen, Hits& hits) {
  const Sighting* sighting = seen.sighting(entry.id);
  if (sighting && sighting->count > 1) hits.add(*sighting);
}

}  // namespace

const Entries& memory_entries() {
  static const Entries entries = {
      {"12.6-1",
       Severity::kWillFail,
       "a GPU ran out of memory before the first step was done",
       {},
       "torch 1.x-2.14",
       "weights, gradients, optimizer state and activations do not fit",
       "Stage 2 -> 3, a smaller micro batch with more accumulation, gradient checkpointing in the model, "
       "offload.",
       "docs/findings.md, alloc-failed",
       Role::kCause,
       {},
       first_step},
      {"12.6-2",
       Severity::kWillFail,
       "a GPU ran out of memory after many steps",
       {},
       "torch 1.x-2.14",
       "the longest sample, fragmentation, a growing cache, or evaluation",
       "Cap or pack the length, sort the longest first so that it fails early; "
       "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.",
       "docs/findings.md, alloc-failed",
       Role::kCause,
       {},
       many_steps},
      {"12.6-3",
       Severity::kWillFail,
       "a GPU ran out of memory while saving",
       {},
       "DeepSpeed 0.10-0.19.8",
       "rank 0 gathers the layers on its GPU and keeps the whole copy in host memory",
       "`\"stage3_gather_16bit_weights_on_model_save\": false` and zero_to_fp32.py afterwards; never "
       "state_dict() inside one "
       "GatheredParameters of all parameters.",
       "DeepSpeed, runtime/engine.py",
       Role::kCause,
       {},
       in_save},
      {"12.6-4",
       Severity::kWillFail,
       "one GPU of several ran out of memory",
       {},
       "torch 1.x-2.14",
       "uneven load: all ranks have a context on GPU 0, one long sample, a pipeline stage, another process",
       "`torch.cuda.set_device(int(os.environ[\"LOCAL_RANK\"]))` first; map_location=\"cpu\" in torch.load; "
       "look for other "
       "processes with nvidia-smi.",
       "docs/findings.md, memory-imbalance",
       Role::kCause,
       {},
       one_rank},
      {"12.6-5",
       Severity::kWillFail,
       "out of memory in a job with NVMe offload",
       {},
       "DeepSpeed 0.10-0.19.8",
       "nvme_path is memory or a network disk, or the cache in host memory is too large",
       "A real local NVMe disk; a lower offload_param.max_in_cpu (elements, not bytes).",
       "DeepSpeed, runtime/swap_tensor",
       Role::kCause,
       {"X-01"},
       nvme},
      {"X-31",
       Severity::kSlow,
       "the allocator flushes its cache again and again",
       {{R"(\d+ pytorch allocator cache flushes since last step)"}},
       "DeepSpeed 0.10-0.19.8",
       "GPU memory is nearly full",
       "A smaller batch or smaller buckets, expandable_segments:True, or empty_cache() on all "
       "ranks in the same step.",
       "microsoft/DeepSpeedExamples#172",
       Role::kCause,
       {},
       flushes},
      {"X-40",
       Severity::kWillFail,
       "a loader worker died for want of shared memory",
       {{R"(Unexpected bus error encountered in worker\. This might be caused by insufficient shared memory)"},
        {R"(DataLoader worker \(pid\(?s?\)? ?[\d, ]+\) (is killed by signal: (Bus error|Killed)|exited unexpectedly))"},
        {R"(received 0 items of ancdata)"}},
       "torch 1.x-2.14",
       "/dev/shm or host memory is used up by batches in flight, or open files",
       "`--shm-size`, fewer workers, `torch.multiprocessing.set_sharing_strategy(\"file_system\")`.",
       "pytorch/pytorch"},
      {"X-01",
       Severity::kWillFail,
       "a rank was killed (exit code -9), nearly always for want of host memory",
       {{R"(exits with return code = -9)"},
        {R"(failed \(exitcode: -9\) local_rank: \d+)"},
        {R"(exitcode *: -9 \(pid)"},
        {R"(Detected \d+ oom.kill event)"},
        {R"(Out of memory: Killed process \d+ \(python)"}},
       "DeepSpeed's launcher, torchrun, Slurm, Linux",
       "the kernel or the container ends whoever uses too much host memory",
       "Less offload, `\"pin_memory\": false`, fewer loader workers, more memory; zero.Init so that not "
       "every rank reads the "
       "whole model. `dmesg | grep -i oom` tells.",
       "deepspeedai/DeepSpeed#4239, #3160; hiyouga/LlamaFactory#4629"},
      {"E-21",
       Severity::kWillFail,
       "host memory is used up",
       {{R"(DefaultCPUAllocator: can't allocate memory: you tried to allocate \d+ bytes)"}},
       "torch 1.x-2.14",
       "a tensor on the CPU (offloaded state, a whole copy of the weights on each rank) does not fit under "
       "the "
       "limit of the host, the container or `ulimit -v`; of huge numbers of bytes a wrong size is the cause",
       "Compare the bytes of the line with `free -g` and the container's limit. Less offload, zero.Init so "
       "that "
       "not every rank holds the whole model, fewer loader workers, more memory.",
       "torch, c10/core/impl/alloc_cpu.cpp"},
      {"E-22",
       Severity::kWillFail,
       "host memory could not be pinned",
       {{R"(CUDA error: out of memory)", R"(pin_memory)"}},
       "torch 1.x-2.14; offload pins its buffers by default since DeepSpeed 0.19.5",
       "pinned pages cannot be swapped: CUDA found not enough of them on the host; the GPU's memory is not "
       "meant",
       "`\"pin_memory\": false` in offload_optimizer and offload_param, pin_memory=False of DataLoaders, or "
       "more "
       "host memory (a container's limit counts).",
       "DeepSpeed, runtime/zero/offload_config.py",
       Role::kCause,
       {"E-23"}},
      {"E-23",
       Severity::kWillFail,
       "CUDA itself found no memory left on a GPU",
       {{R"(CUDA error: out of memory)"}},
       "torch 1.x-2.14",
       "not torch's allocator but CUDA asked: for its context or a kernel, on a GPU that another process, or "
       "another rank, has filled",
       "`nvidia-smi` shows who uses the GPU: end leftover processes; "
       "`torch.cuda.set_device(int(os.environ[\"LOCAL_RANK\"]))` first. If the line of the program pins host "
       "memory, that is what is short.",
       "torch"},
      {"E-24",
       Severity::kWillFail,
       "cuBLAS got no memory for itself",
       {{R"(CUBLAS_STATUS_ALLOC_FAILED)"}},
       "torch 1.x-2.14",
       "its handle and workspace lie outside torch's cache, and the GPU is full; rarely an earlier kernel's "
       "failure (an index out of range) shows here",
       "A smaller micro batch, or leave memory free (`torch.cuda.set_per_process_memory_fraction(0.95)`); if "
       "nvidia-smi shows free memory, CUDA_LAUNCH_BLOCKING=1.",
       "cuBLAS"},
  };
  return entries;
}

}  // namespace dshang::explain
