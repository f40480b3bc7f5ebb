// memory-pressure: a communicator created where hardly any device memory was left; a step whose peak leaves
// less than DSHANG_MEMORY_HEADROOM of the device; an allocator that had to flush its cache and try again,
// step after step.
//
// Little free memory alone is nothing: caching allocators keep it low.  A communicator counts where its
// creation failed or goes on, or where one like it would no longer fit.  The peak of a step is what the probe
// reads from torch's allocator; what other libraries and processes take of the device is not in it, so the
// true headroom is smaller.
#include <algorithm>
#include <cstdlib>

#include "detectors/words.h"

namespace dshang::detect {
namespace {

using flight::CommState;
using flight::kUnknownBytes;
using job::Comm;
using job::MemoryStep;
using job::RankView;

constexpr std::size_t kLookedAt = 50;   // steps
constexpr std::size_t kTightSteps = 3;  // of them
constexpr std::size_t kRetrySteps = 2;

std::uint64_t device_total(const JobView& view, const RankView& rank) {
  const auto& facts = rank.records().facts;
  for (std::uint64_t n = facts.end(); n-- > facts.first();) {
    if (view.names().text(facts.at(n).key) == "device.memory_total") {
      return std::strtoull(view.names().text(facts.at(n).value).c_str(), nullptr, 10);
    }
  }
  const auto& failures = rank.records().alloc_failures;
  for (std::uint64_t n = failures.end(); n-- > failures.first();) {
    if (failures.at(n).total != kUnknownBytes) return failures.at(n).total;
  }
  return 0;
}

std::string headroom_text(const JobView& view, std::uint64_t headroom) {
  return "judged by DSHANG_MEMORY_HEADROOM: " + bytes_text(headroom) +
         (view.params().memory_headroom_is_percent ? " of this device" : "");
}

Finding finding_of(const RankView& rank, std::string summary) {
  Finding f;
  f.type = "memory-pressure";
  f.severity = Severity::kWarning;
  f.suspects = {rank.rank};
  f.summary = "rank " + std::to_string(rank.rank) + std::move(summary);
  return f;
}

// `free_before` is 0 until it was asked for.
bool at_low_memory(const JobView& view, const Comm& comm, std::uint64_t headroom) {
  bool known = comm.free_before != 0 && comm.free_before != kUnknownBytes;
  if (comm.state == CommState::kNone || !known || comm.free_before >= headroom) return false;
  if (comm.state == CommState::kFailed) return true;
  if (comm.state == CommState::kCreating) return view.ago(comm.begin_ns) >= view.stall_after();
  if (comm.free_after == kUnknownBytes || comm.free_after > comm.free_before) return false;
  return comm.free_after < comm.free_before - comm.free_after;
}

void look_at_communicators(Work& work, const RankView& rank, std::uint64_t headroom) {
  const JobView& view = work.view;
  for (const Comm& comm : rank.records().comms) {
    if (!at_low_memory(view, comm, headroom)) continue;
    std::string size =
        comm.size > 0 ? "a communicator of " + std::to_string(comm.size) : std::string("a communicator");
    std::string at = comm.site ? view.names().place_text(view.names().place_of(comm.site)) : "";
    Finding f = finding_of(rank, ": new communicator at " + bytes_text(comm.free_before) +
                                     " of free device memory" + (at.empty() ? "" : " (" + at + ")") +
                                     (comm.state == CommState::kFailed ? "; its creation failed" : ""));
    f.certainty = f.class_certainty =
        comm.state == CommState::kFailed ? Certainty::kProven : Certainty::kJudged;
    f.evidence.push_back(
        size + " was created with " + bytes_text(comm.free_before) + " free" +
        (comm.free_after == kUnknownBytes ? "" : ", " + bytes_text(comm.free_after) + " were left"));
    std::string peers;
    for (const RankView& other : view.ranks) {
      for (const Comm& theirs : other.records().comms) {
        bool same = theirs.id == comm.id && other.rank != rank.rank && theirs.free_before != kUnknownBytes &&
                    theirs.free_before != 0;
        if (same)
          peers += (peers.empty() ? "" : ", ") + std::string("rank ") + std::to_string(other.rank) + " " +
                   bytes_text(theirs.free_before);
      }
    }
    if (!peers.empty()) f.evidence.push_back("free on the others at that moment: " + peers);
    f.evidence.push_back(headroom_text(view, headroom));
    f.fix = {
        "Create and warm up communicators early, before the memory peak: NCCL takes some 100 MiB for each, "
        "outside of torch's allocator.",
        "Leave headroom on the device: a smaller micro-batch, `torch.cuda.empty_cache()` before the "
        "creation, or "
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True."};
    f.at = view.seconds(comm.begin_ns);
    work.findings.push_back(std::move(f));
    return;
  }
}

void look_at_steps(Work& work, const RankView& rank, std::uint64_t total, std::uint64_t headroom) {
  const JobView& view = work.view;
  const auto& steps = rank.records().memory_steps;
  std::uint64_t from = steps.end() > steps.first() + kLookedAt ? steps.end() - kLookedAt : steps.first();
  const MemoryStep *tightest = nullptr, *first_retry = nullptr;
  std::size_t tight = 0, retried = 0, looked_at = 0;
  for (std::uint64_t n = from; n < steps.end(); ++n) {
    const MemoryStep& step = steps.at(n);
    if (step.time_ns == 0) continue;
    ++looked_at;
    if (step.retries) {
      ++retried;
      if (!first_retry) first_retry = &step;
    }
    if (!total || step.allocated_peak == kUnknownBytes ||
        total - std::min(total, step.allocated_peak) >= headroom)
      continue;
    ++tight;
    if (!tightest || step.allocated_peak > tightest->allocated_peak) tightest = &step;
  }
  if (tight < kTightSteps && retried < kRetrySteps) return;
  bool is_tight = tight >= kTightSteps;
  const MemoryStep& named = is_tight ? *tightest : *first_retry;
  Finding f = finding_of(
      rank, is_tight
                ? ": the peak of a step leaves " + bytes_text(total - std::min(total, named.allocated_peak)) +
                      " of " + bytes_text(total) + " of device memory"
                : ": the allocator had to flush its cache and ask again in " + std::to_string(retried) +
                      " of the last " + std::to_string(looked_at) + " steps");
  if (named.step != job::kNoStep) f.step = named.step;
  if (is_tight) {
    f.evidence.push_back(
        "so in " + std::to_string(tight) + " of the last " + std::to_string(looked_at) +
        " steps; peak of what torch had allocated: " + bytes_text(named.allocated_peak) +
        (named.reserved_peak == kUnknownBytes ? "" : ", reserved " + bytes_text(named.reserved_peak)));
    f.evidence.push_back(headroom_text(view, headroom));
  }
  if (retried)
    f.evidence.push_back("requests that failed and succeeded after a flush: in " + std::to_string(retried) +
                         " steps");
  f.fix = {
      "Make the step smaller on this rank (micro-batch, sequence length, activation checkpointing, offload) "
      "before it runs out of memory.",
      "If much is reserved but not allocated, try PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True."};
  f.at = view.seconds(named.time_ns);
  work.findings.push_back(std::move(f));
}

void run(Work& work) {
  const JobView& view = work.view;
  for (const RankView& rank : view.ranks) {
    std::uint64_t total = device_total(view, rank);
    if (view.params().memory_headroom_is_percent && total == 0) continue;
    std::uint64_t headroom = view.params().memory_headroom_of(total);
    std::size_t before = work.findings.size();
    look_at_communicators(work, rank, headroom);
    if (work.findings.size() == before) look_at_steps(work, rank, total, headroom);
  }
}

}  // namespace

DSHANG_DETECTOR(11, "memory-pressure", run);

}  // namespace dshang::detect
