// memory-pressure: a communicator created where hardly any device memory was left; a step whose peak leaves
// less than DSHANG_MEMORY_HEADROOM of the device; an allocator that had to flush its cache and try again,
// step after step.
//
// Little free memory alone is nothing: caching allocators keep it low.  A communicator counts where its
// creation failed or goes on, or where one like it would no longer fit.  The peak of a step is what the probe
// reads from torch's allocator; what is free is seen now and then, and what nobody accounts for (context,
// NCCL, other processes) follows from it.  Where it was not seen the true headroom is smaller.  Ranks of one
// communicator, and ranks whose steps are close to the end, are told as one, with the numbers of the closest.
#include <algorithm>
#include <utility>

#include "detectors/memory_time.h"
#include "detectors/memory_use.h"
#include "detectors/rank_list.h"
#include "detectors/went_on.h"
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

Finding finding_of(std::vector<Rank> suspects, const char* subject, std::string summary) {
  Finding f;
  f.type = "memory-pressure";
  f.subject = subject;
  f.severity = Severity::kWarning;
  f.summary = job::ranks_text(suspects) + ": " + std::move(summary);
  f.suspects = std::move(suspects);
  return f;
}

// What is to be left free on its device.
bool is_known(const JobView& view, const RankView& rank) {
  return !view.params().memory_headroom_is_percent || device_total(view, rank) != 0;
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

// A communicator that was created at low memory, as these ranks have it.
struct Tight {
  std::vector<std::pair<const RankView*, const Comm*>> ranks;
  bool has(const RankView& rank) const {
    return std::any_of(ranks.begin(), ranks.end(), [&](const auto& one) { return one.first == &rank; });
  }
};

// A rank did not catch it, and has ended or is about to.
bool ended_by_it(const JobView& view, const Tight& tight) {
  return std::any_of(tight.ranks.begin(), tight.ranks.end(), [&](const auto& one) {
    const auto& [rank, comm] = one;
    return went_on_at(*rank, comm->begin_ns) == 0 &&
           (!rank->alive() || uncaught_since(view, *rank, comm->begin_ns));
  });
}

Finding finding_of(const JobView& view, const Tight& tight, const std::string& headroom) {
  const auto& [worst, found] = *std::min_element(
      tight.ranks.begin(), tight.ranks.end(),
      [](const auto& a, const auto& b) { return a.second->free_before < b.second->free_before; });
  const Comm& comm = *found;
  bool failed = comm.state == CommState::kFailed, many = tight.ranks.size() > 1;
  std::vector<Rank> suspects;
  for (const auto& one : tight.ranks) suspects.push_back(one.first->rank);
  std::string size =
      comm.size > 0 ? "a communicator of " + std::to_string(comm.size) : std::string("a communicator");
  std::string at = comm.site ? view.names().place_text(view.names().place_of(comm.site)) : "";
  Finding f = finding_of(std::move(suspects), "communicator",
                         "new communicator at " + bytes_text(comm.free_before) + " of free device memory" +
                             (many ? " on rank " + std::to_string(worst->rank) : "") +
                             (at.empty() ? "" : " (" + at + ")") + (failed ? "; its creation failed" : ""));
  f.certainty = f.class_certainty = failed ? Certainty::kProven : Certainty::kJudged;
  if (failed && ended_by_it(view, tight)) f.severity = Severity::kError;
  f.evidence.push_back(
      size + (failed ? " was to be created with " : " was created with ") + bytes_text(comm.free_before) +
      " free" + (comm.free_after == kUnknownBytes ? "" : ", " + bytes_text(comm.free_after) + " were left"));
  RankList peers;
  for (const RankView& other : view.ranks) {
    for (const Comm& theirs : other.records().comms) {
      bool same = theirs.id == comm.id && other.rank != worst->rank && theirs.free_before != kUnknownBytes &&
                  theirs.free_before != 0;
      if (same) peers.add(other.rank, bytes_text(theirs.free_before));
    }
  }
  if (!peers.empty()) f.evidence.push_back("free on the others at that moment: " + peers.text());
  f.evidence.push_back(headroom);
  f.fix = {
      "Create and warm up communicators early, before the memory peak: NCCL takes some 100 MiB for each, "
      "outside of torch's allocator.",
      "Leave headroom on the device: a smaller micro-batch, `torch.cuda.empty_cache()` before the "
      "creation" +
          std::string(expandable_segments(view, *worst)
                          ? "."
                          : ", or PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.")};
  f.at = view.seconds(comm.begin_ns);
  return f;
}

// The first that each rank created so, with the others that did the same.
std::vector<Tight> tight_communicators(const JobView& view) {
  std::vector<Tight> found;
  for (const RankView& rank : view.ranks) {
    std::uint64_t headroom = view.params().memory_headroom_of(device_total(view, rank));
    const auto& comms = rank.records().comms;
    auto comm = std::find_if(comms.begin(), comms.end(),
                             [&](const Comm& one) { return at_low_memory(view, one, headroom); });
    if (comm == comms.end() || !is_known(view, rank)) continue;
    auto same = std::find_if(found.begin(), found.end(), [&](const Tight& tight) {
      const Comm& first = *tight.ranks.front().second;
      return first.id == comm->id &&
             (first.state == CommState::kFailed) == (comm->state == CommState::kFailed);
    });
    if (same == found.end()) same = found.insert(found.end(), Tight());
    same->ranks.emplace_back(&rank, &*comm);
  }
  return found;
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

// Of several ranks the one whose steps came closest, else the one that had to flush most often.
using RankLooked = std::pair<const RankView*, Looked>;
bool is_closer(const RankLooked& a, const RankLooked& b) {
  if (!a.second.peak || !b.second.peak)
    return a.second.peak || (!b.second.peak && a.second.retried.size() > b.second.retried.size());
  return a.second.left < b.second.left;
}

std::string steps_text(const JobView& view, const RankLooked& worst, bool many) {
  const Looked& looked = worst.second;
  std::string rank = "rank " + std::to_string(worst.first->rank);
  if (looked.peak) {
    std::string left = bytes_text(looked.left) + " of " + bytes_text(device_total(view, *worst.first)) +
                       " of device memory",
                step = "step " + std::to_string(looked.peak->step);
    return many ? "steps come close to the end of device memory, closest on " + rank + ": the peak of " +
                      step + " leaves " + left
                : "the peak of " + step + " leaves " + left;
  }
  return "the allocator had to flush its cache and ask again" +
         (many ? ", most often on " + rank + ":" : std::string()) + " in " +
         std::to_string(looked.retried.size()) + " of the last " + std::to_string(looked.steps.size()) +
         " steps";
}

Finding finding_of(const JobView& view, const std::vector<RankLooked>& all) {
  const RankLooked& worst = *std::min_element(all.begin(), all.end(), is_closer);
  const auto& [rank, looked] = worst;
  const MemoryStep& named = looked.peak ? *looked.peak : *looked.retried.front();
  std::uint64_t total = device_total(view, *rank);
  std::vector<Rank> suspects;
  RankList others;
  for (const RankLooked& one : all) {
    suspects.push_back(one.first->rank);
    if (one.first != rank && one.second.peak)
      others.add(one.first->rank,
                 bytes_text(one.second.left) + " in step " + std::to_string(one.second.peak->step));
  }
  Finding f = finding_of(std::move(suspects), "steps", steps_text(view, worst, all.size() > 1));
  f.step = named.step;
  for (std::string& line : evidence_of_peak(view, *rank, named)) f.evidence.push_back(std::move(line));
  if (looked.peak) {
    f.measure = static_cast<std::int64_t>(named.allocated_peak / (total / kRungs + 1));
    f.evidence.push_back("so close in " + std::to_string(looked.tight.size()) + " of the last " +
                         std::to_string(looked.steps.size()) + " steps; " +
                         headroom_text(view, view.params().memory_headroom_of(total)));
  }
  if (!others.empty()) f.evidence.push_back("left on the others: " + others.text());
  if (!looked.retried.empty())
    f.evidence.push_back("requests that failed and succeeded after a flush: in " +
                         std::to_string(looked.retried.size()) + " steps");
  if (std::string time = time_by_step(memory_time(*rank, looked.retried), "step"); !time.empty())
    f.evidence.push_back("time lost in taking and giving back memory: " + time);
  f.fix = {"Make the step smaller on " + std::string(all.size() == 1 ? "this rank" : "these ranks") +
           " (micro-batch, sequence length, activation checkpointing, offload) "
           "before it runs out of memory."};
  if (!expandable_segments(view, *rank))
    f.fix.push_back(
        "If much is reserved but not allocated, try PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.");
  f.at = view.seconds(named.time_ns);
  return f;
}

void run(Work& work) {
  const JobView& view = work.view;
  std::vector<Tight> communicators = tight_communicators(view);
  for (const Tight& tight : communicators) {
    const RankView& first = *tight.ranks.front().first;
    work.findings.push_back(finding_of(
        view, tight, headroom_text(view, view.params().memory_headroom_of(device_total(view, first)))));
  }
  std::vector<RankLooked> close;
  for (const RankView& rank : view.ranks) {
    auto told = [&](const Tight& tight) { return tight.has(rank); };
    if (!is_known(view, rank) || std::any_of(communicators.begin(), communicators.end(), told)) continue;
    std::uint64_t total = device_total(view, rank);
    Looked looked = look_at(rank, total, view.params().memory_headroom_of(total));
    if (looked.peak || looked.retried.size() >= kRetrySteps) close.emplace_back(&rank, std::move(looked));
  }
  if (!close.empty()) work.findings.push_back(finding_of(view, close));
}

}  // namespace

DSHANG_DETECTOR(11, "memory-pressure", run);

}  // namespace dshang::detect
