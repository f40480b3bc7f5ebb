#include "detectors/memory_use.h"

#include <algorithm>
#include <cstdlib>

#include "detectors/known_facts.h"
#include "detectors/words.h"

namespace dshang::detect {
namespace {

using flight::MemoryKind;
using job::MemoryStep;

constexpr MemoryKind kOfDevice[] = {MemoryKind::kDevice, MemoryKind::kManaged, MemoryKind::kPool,
                                    MemoryKind::kVirtual};

std::uint64_t sum(const std::uint64_t (&kinds)[flight::kMemoryKinds]) {
  std::uint64_t bytes = 0;
  for (MemoryKind kind : kOfDevice) bytes += kinds[static_cast<std::size_t>(kind)];
  return bytes;
}

constexpr double kRetrySeconds = 1;       // time an allocator may take to try again
constexpr std::int32_t kOutOfMemory = 2;  // cudaErrorMemoryAllocation and CUDA_ERROR_OUT_OF_MEMORY
constexpr double kUnusual = 1.3;          // a batch that much larger than the usual one is worth a word

}  // namespace

std::uint64_t taken(const MemoryStep& step) { return sum(step.live); }
std::uint64_t taken_peak(const MemoryStep& step) { return std::max(sum(step.peak), sum(step.live)); }

std::uint64_t used_peak(const MemoryStep& step) {
  return known(step.allocated_peak).value_or(taken_peak(step));
}

Bytes unaccounted(const MemoryStep& step) {
  Bytes free = known(step.device_free), total = known(step.device_total);
  if (!free || !total) return {};
  std::uint64_t spoken_for = *free + taken(step);
  return *total > spoken_for ? *total - spoken_for : 0;
}

Bytes within_reach(const MemoryStep& step) {
  Bytes total = known(step.device_total), other = unaccounted(step);
  if (!total) return {};
  return *total - std::min(*total, other.value_or(0));
}

bool expandable_segments(const JobView& view, const job::RankView& rank) {
  const std::string& settings = fact_of(view, rank, {"torch.allocator"});
  if (!settings.empty()) return settings.find("expandable_segments:True") != settings.npos;
  const auto& live = rank.records().live;
  return live[static_cast<std::size_t>(MemoryKind::kVirtual)] >
         live[static_cast<std::size_t>(MemoryKind::kDevice)];
}

std::uint64_t device_total(const JobView& view, const job::RankView& rank) {
  const job::RankRecords& records = rank.records();
  for (std::uint64_t n = records.memory_steps.end(); n-- > records.memory_steps.first();) {
    if (Bytes total = known(records.memory_steps.at(n).device_total); total && *total) return *total;
  }
  for (std::uint64_t n = records.facts.end(); n-- > records.facts.first();) {
    if (view.names().text(records.facts.at(n).key) == "device.memory_total")
      return std::strtoull(view.names().text(records.facts.at(n).value).c_str(), nullptr, 10);
  }
  for (std::uint64_t n = records.alloc_failures.end(); n-- > records.alloc_failures.first();) {
    if (Bytes total = known(records.alloc_failures.at(n).total)) return *total;
  }
  return 0;
}

std::vector<const MemoryStep*> memory_steps(const job::RankView& rank, std::size_t most) {
  const auto& all = rank.records().memory_steps;
  std::vector<const MemoryStep*> steps;
  for (std::uint64_t n = all.end(); n-- > all.first() && steps.size() < most;) {
    if (all.at(n).time_ns != 0 && all.at(n).step != job::kNoStep) steps.push_back(&all.at(n));
  }
  std::reverse(steps.begin(), steps.end());
  return steps;
}

const job::AllocFailure* last_alloc_failure(const JobView& view, const job::RankView& rank) {
  const auto& failures = rank.records().alloc_failures;
  for (std::uint64_t n = failures.end(); n-- > failures.first();) {
    const job::AllocFailure& failure = failures.at(n);
    bool settled = view.ago(failure.time_ns) >= kRetrySeconds || !rank.alive();
    if (failure.result == kOutOfMemory && !failure.retried && settled) return &failure;
  }
  return nullptr;
}

std::uint64_t elements(const std::uint32_t (&batch)[flight::kBatchSizes]) {
  if (batch[0] == 0) return 0;
  std::uint64_t count = 1;
  for (std::uint32_t size : batch) count *= size ? size : 1;
  return count;
}

std::string batch_text(const std::uint32_t (&batch)[flight::kBatchSizes]) {
  std::string text;
  for (std::uint32_t size : batch) {
    if (size) text += (text.empty() ? "" : " x ") + std::to_string(size);
  }
  return text;
}

const MemoryStep* usual_batch(const std::vector<const MemoryStep*>& steps) {
  std::vector<const MemoryStep*> with;
  for (const MemoryStep* step : steps) {
    if (elements(step->batch)) with.push_back(step);
  }
  if (with.empty()) return nullptr;
  auto middle = with.begin() + static_cast<std::ptrdiff_t>(with.size() / 2);
  std::nth_element(with.begin(), middle, with.end(), [](const MemoryStep* a, const MemoryStep* b) {
    return elements(a->batch) < elements(b->batch);
  });
  return *middle;
}

std::string phases_text(const JobView& view, const MemoryStep& step) {
  std::vector<job::MemoryPhase> phases;
  for (const job::MemoryPhase& phase : step.phases) {
    if (phase.phase) phases.push_back(phase);
  }
  std::stable_sort(phases.begin(), phases.end(), [](const job::MemoryPhase& a, const job::MemoryPhase& b) {
    return a.allocated > b.allocated;
  });
  std::string text;
  for (const job::MemoryPhase& phase : phases)
    text += (text.empty() ? "" : ", ") + view.names().text(phase.phase) + " " + bytes_text(phase.allocated);
  return text.empty() ? "" : "by phase, at most or at its end: " + text;
}

std::string batch_against_usual(const std::uint32_t (&batch)[flight::kBatchSizes],
                                const std::vector<const MemoryStep*>& steps) {
  std::string text = batch_text(batch);
  if (text.empty()) return "";
  text = "batch " + text;
  const MemoryStep* usual = usual_batch(steps);
  if (!usual || steps.size() < 3) return text;
  std::string relation = "as usual";
  if (elements(batch) >= kUnusual * static_cast<double>(elements(usual->batch)))
    relation = "usually " + batch_text(usual->batch);
  return text + ", " + relation;
}

std::vector<std::string> evidence_of_peak(const JobView& view, const job::RankView& rank,
                                          const MemoryStep& step) {
  std::vector<std::string> lines;
  std::string parts = known(step.allocated_peak)
                          ? "torch had allocated " + bytes_text(step.allocated_peak) + " at most"
                          : "the process had taken " + bytes_text(taken_peak(step)) + " at most";
  if (known(step.reserved_peak)) parts += ", reserved " + bytes_text(step.reserved_peak);
  if (Bytes other = unaccounted(step))
    parts += "; context, NCCL, libraries and other processes " + bytes_text(*other);
  if (known(step.device_free)) parts += "; free at its end " + bytes_text(step.device_free);
  lines.push_back("step " + std::to_string(step.step) + ": " + parts);
  std::string cause = phases_text(view, step);
  if (cause.empty() && step.peak_phase)
    cause = "device memory grew last in " + view.names().text(step.peak_phase);
  auto add = [&](const std::string& text) {
    if (!text.empty()) cause += (cause.empty() ? "" : "; ") + text;
  };
  add(batch_against_usual(step.batch, memory_steps(rank)));
  if (step.peak_module)
    add("device memory was last taken in " +
        (step.peak_phase ? view.names().text(step.peak_phase) + ", " : std::string()) + "module " +
        view.names().text(step.peak_module));
  if (!cause.empty()) lines.push_back("what made the peak: " + cause);
  return lines;
}

std::string host_memory_text(const job::RankView& rank) {
  std::string text;
  const auto& samples = rank.journal().samples;
  for (auto sample = samples.rbegin(); sample != samples.rend() && text.empty(); ++sample) {
    if (sample->rss_bytes) text = bytes_text(*sample->rss_bytes) + " resident";
  }
  const auto& live = rank.records().live;
  std::uint64_t pinned = live[static_cast<std::size_t>(MemoryKind::kHost)] +
                         live[static_cast<std::size_t>(MemoryKind::kRegistered)];
  if (pinned) text += (text.empty() ? "" : ", ") + bytes_text(pinned) + " pinned";
  return text;
}

}  // namespace dshang::detect
