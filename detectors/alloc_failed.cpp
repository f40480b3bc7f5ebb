// alloc-failed: a request for device memory failed and was not satisfied by trying again.
//
// A caching allocator frees what it holds and asks again, so a failure whose repetition succeeded is no finding.
#include <algorithm>

#include "detectors/words.h"

namespace dshang::detect {
namespace {

constexpr double kRetrySeconds = 1;        // time an allocator may take to try again
constexpr std::int32_t kOutOfMemory = 2;   // cudaErrorMemoryAllocation and CUDA_ERROR_OUT_OF_MEMORY

const job::AllocFailure* last_failure(const JobView& view, const job::RankView& rank) {
  const auto& failures = rank.records().alloc_failures;
  for (std::uint64_t n = failures.end(); n-- > failures.first();) {
    const job::AllocFailure& failure = failures.at(n);
    bool settled = view.ago(failure.time_ns) >= kRetrySeconds || !rank.alive();
    if (failure.result == kOutOfMemory && !failure.retried && settled) return &failure;
  }
  return nullptr;
}

std::string where(const JobView& view, const job::AllocFailure& failure) {
  std::string text;
  if (failure.step != job::kNoStep) text += " in step " + std::to_string(failure.step);
  if (failure.phase) text += ", " + view.names().text(failure.phase);
  if (failure.module) text += ", module " + view.names().text(failure.module);
  if (failure.site) {
    if (std::string at = view.names().place_text(view.names().place_of(failure.site)); !at.empty()) text += ", at " + at;
  }
  return text;
}

Finding make_finding(const JobView& view, const job::RankView& rank, const job::AllocFailure& failure) {
  Finding f;
  f.type = "alloc-failed";
  f.severity = Severity::kError;
  f.certainty = f.class_certainty = Certainty::kProven;
  f.suspects = {rank.rank};
  f.at = view.seconds(failure.time_ns);
  if (failure.step != job::kNoStep) f.step = failure.step;
  f.summary = "rank " + std::to_string(rank.rank) + " could not allocate " + bytes_text(failure.size) + " of device memory (" +
              bytes_text(failure.free) + " free of " + bytes_text(failure.total) + ")" + where(view, failure);
  f.evidence.push_back("allocated by the process through CUDA at that moment: " + bytes_text(failure.live_device));
  std::string peers;
  for (const job::RankView& other : view.ranks) {
    if (other.rank == rank.rank) continue;
    peers += (peers.empty() ? "" : ", ") + std::string("rank ") + std::to_string(other.rank) + " " +
             bytes_text(other.records().live[static_cast<std::size_t>(flight::MemoryKind::kDevice)]);
  }
  if (!peers.empty()) f.evidence.push_back("allocated by the others: " + peers);
  f.fix = {"Make the step smaller on this rank: micro-batch size, sequence length, activation checkpointing, offload.",
           "If the size varies from batch to batch, bound it (sort or cap by length); if much is reserved but unused, try "
           "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True."};
  return f;
}

void run(Work& work) {
  for (const job::RankView& rank : work.view.ranks) {
    if (const job::AllocFailure* failure = last_failure(work.view, rank)) {
      work.findings.push_back(make_finding(work.view, rank, *failure));
    }
  }
}

}  // namespace

DSHANG_DETECTOR(10, "alloc-failed", run);

}  // namespace dshang::detect
