// memory-pressure: a communicator created where hardly any device memory was left; a step whose peak leaves
// less than DSHANG_MEMORY_HEADROOM of the device; an allocator that had to flush its cache and try again,
// step after step.
//
// Little free memory alone is nothing: caching allocators keep it low.  A communicator counts where its
// creation failed or goes on, or where one like it would no longer fit.  The peak of a step is what the probe
// reads from torch's allocator; what is free is seen now and then, and what nobody accounts for (context,
// NCCL, other processes) follows from it.  Where it was not seen the true headroom is smaller.
#include <algorithm>

#include "detectors/memory_time.h"
#include "detectors/memory_use.h"
#include "detectors/words.h"

namespace dshang::detect {
namespace {

using flight::CommState;
using flight::kUnknownBytes;
using job::Comm;
using job::MemoryStep;
using job::RankView;

constexpr std::size_t kLookedAt = 50;   // steps
constexpr std::size_t kRetrySteps = 2;  // of them
constexpr std::uint64_t kRungs = 100;   // a peak that is higher by a hundredth of the device is told anew

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

struct Looked {
  std::vector<const MemoryStep*> steps, tight, retried;
  const MemoryStep* peak = nullptr;  // of the tight ones, the first that came so far
  std::uint64_t left = 0;            // at it
};

// What others take of the device differs by when it was looked at: the least of it is surely taken.
std::uint64_t least_unaccounted(const std::vector<const MemoryStep*>& steps) {
  Bytes least;
  for (const MemoryStep* step : steps) {
    if (Bytes other = unaccounted(*step)) least = std::min(least.value_or(*other), *other);
  }
  return least.value_or(0);
}

bool failed_in(const RankView& rank, std::int64_t step) {
  const auto& failures = rank.records().alloc_failures;
  for (std::uint64_t n = failures.first(); n < failures.end(); ++n) {
    if (failures.at(n).time_ns && failures.at(n).step == step && !failures.at(n).retried) return true;
  }
  return false;
}

Looked look_at(const RankView& rank, std::uint64_t total, std::uint64_t headroom) {
  Looked looked;
  looked.steps = memory_steps(rank, kLookedAt);
  std::uint64_t reach = total - std::min(total, least_unaccounted(looked.steps));
  for (const MemoryStep* step : looked.steps) {
    if (failed_in(rank, step->step)) continue;  // alloc-failed says more
    if (step->retries) looked.retried.push_back(step);
    if (!total || !known(step->allocated_peak)) continue;
    std::uint64_t left = reach - std::min(reach, step->allocated_peak);
    if (left >= headroom) continue;
    looked.tight.push_back(step);
    bool higher = !looked.peak || step->allocated_peak >= looked.peak->allocated_peak + total / kRungs;
    if (higher) looked.peak = step, looked.left = left;
  }
  return looked;
}

void look_at_steps(Work& work, const RankView& rank, std::uint64_t total, std::uint64_t headroom) {
  const JobView& view = work.view;
  Looked looked = look_at(rank, total, headroom);
  if (!looked.peak && looked.retried.size() < kRetrySteps) return;
  const MemoryStep& named = looked.peak ? *looked.peak : *looked.retried.front();
  Finding f = finding_of(rank, looked.peak ? ": the peak of step " + std::to_string(named.step) + " leaves " +
                                                 bytes_text(looked.left) + " of " + bytes_text(total) +
                                                 " of device memory"
                                           : ": the allocator had to flush its cache and ask again in " +
                                                 std::to_string(looked.retried.size()) + " of the last " +
                                                 std::to_string(looked.steps.size()) + " steps");
  f.step = named.step;
  for (std::string& line : evidence_of_peak(view, rank, named)) f.evidence.push_back(std::move(line));
  if (looked.peak) {
    f.measure = static_cast<std::int64_t>(named.allocated_peak / (total / kRungs + 1));
    f.evidence.push_back("so close in " + std::to_string(looked.tight.size()) + " of the last " +
                         std::to_string(looked.steps.size()) + " steps; " + headroom_text(view, headroom));
  }
  if (!looked.retried.empty())
    f.evidence.push_back("requests that failed and succeeded after a flush: in " +
                         std::to_string(looked.retried.size()) + " steps");
  if (std::string time = time_by_step(memory_time(rank, looked.retried), "step"); !time.empty())
    f.evidence.push_back("time lost in taking and giving back memory: " + time);
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
