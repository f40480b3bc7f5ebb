#include "detectors/alloc_story.h"

#include <algorithm>
#include <cstdio>

#include "detectors/alloc_cause.h"
#include "detectors/known_facts.h"
#include "detectors/memory_plan.h"
#include "detectors/memory_use.h"
#include "detectors/words.h"

namespace dshang::detect {
namespace {

using job::AllocFailure;
using job::MemoryStep;
using job::RankView;

constexpr double kFarLess = 0.67;  // of this rank's memory: the others are not near their limit
constexpr std::size_t kMostWays = 4;

// All that is known around one failure.
struct Case {
  const JobView& view;
  const RankView& rank;
  const AllocFailure& failure;
  std::vector<const MemoryStep*> steps;  // finished before
  std::optional<AllocatorState> allocator;
  std::vector<CardUser> users;  // other processes on its card, where torch names them
  Bytes free, total, other;
  std::uint64_t taken = 0;
  MemorySettings settings;
  ModelParts parts;
  std::string phase;
  std::uint64_t in_use() const { return allocator ? allocator->allocated : taken; }
  bool in_first_step() const { return steps.empty(); }
  bool in(const char* name) const { return phase == name; }
};

// What torch said at the exception that followed, else what the probe saw last.
std::optional<AllocatorState> allocator_of(const std::string& message, const AllocFailure& failure) {
  if (auto state = allocator_state_in(message)) return state;
  Bytes allocated = known(failure.allocator_allocated), reserved = known(failure.allocator_reserved);
  if (!allocated || !reserved) return std::nullopt;
  // By now it holds what it has taken since.
  std::uint64_t now = failure.live_device + failure.live_other;
  return AllocatorState{*allocated, now ? std::max(*allocated, std::min(*reserved, now)) : *reserved};
}

Case case_of(const JobView& view, const RankView& rank, const AllocFailure& failure) {
  std::string message = message_behind(view, rank, failure);
  Case c{view,
         rank,
         failure,
         {},
         allocator_of(message, failure),
         other_users_in(message),
         known(failure.free),
         known(failure.total),
         {},
         failure.live_device + failure.live_other,
         memory_settings(view, rank),
         {},
         ""};
  for (const MemoryStep* step : memory_steps(rank)) {
    if (step->time_ns <= failure.time_ns) c.steps.push_back(step);
  }
  if (c.free && c.total) c.other = taken_by_nobody(failure);
  if (c.settings.parameters) c.parts = parts_of(c.settings);
  if (failure.phase) c.phase = view.names().text(failure.phase);
  if (in_save(view, rank, failure)) c.phase = "save";
  return c;
}

// ---- what holds the memory ----

std::string holders_text(const Case& c) {
  struct Holder {
    std::string what;
    std::uint64_t bytes;
  };
  std::vector<Holder> holders;
  if (c.allocator) {
    holders.push_back({"tensors of torch", c.allocator->allocated});
    holders.push_back({"reserved by torch and not in use", c.allocator->unused()});
    if (c.taken > c.allocator->reserved)
      holders.push_back({"allocated by others in this process", c.taken - c.allocator->reserved});
  }
  if (c.other) holders.push_back({"context, NCCL, libraries and other processes", *c.other});
  std::stable_sort(holders.begin(), holders.end(),
                   [](const Holder& a, const Holder& b) { return a.bytes > b.bytes; });
  std::string text;
  for (const Holder& holder : holders) {
    if (holder.bytes) text += (text.empty() ? "" : ", ") + holder.what + " " + bytes_text(holder.bytes);
  }
  if (text.empty()) return "";
  return (c.allocator ? "the device's memory: " : "beside that: ") + text;
}

// Enough was there, in pieces too small.
bool has_pieces(const Case& c) { return c.allocator && c.allocator->unused() > c.failure.size; }

// ---- the parts of the model ----

// In forward there are no gradients yet; without DeepSpeed the optimizer's state comes with its first step.
std::uint64_t there_by_now(const Case& c) {
  std::uint64_t bytes = c.parts.weights;
  bool is_later = !c.in_first_step() || c.in("optimizer");
  if (c.settings.stage >= 0 || is_later) bytes += c.parts.optimizer;
  if (is_later || c.in("backward")) bytes += c.parts.gradients;
  return bytes;
}

Need need_of(const Case& c) {
  Need need;
  need.total = c.total.value_or(0);
  need.other = c.other.value_or(0);
  std::uint64_t wanted = c.in_use() + c.failure.size, there = there_by_now(c);
  need.activations = wanted > there ? wanted - there : 0;
  return need;
}

std::string estimate_text(const Case& c) {
  if (!c.settings.parameters) return "";
  char parameters[64];
  std::snprintf(parameters, sizeof parameters, "%.3g", static_cast<double>(c.settings.parameters) / 1e9);
  std::string text = "estimated for " + std::string(parameters) + " billion parameters, ";
  if (c.settings.stage >= 0) text += "ZeRO stage " + std::to_string(c.settings.stage) + ", ";
  text += std::string(c.settings.half ? "16 bit" : "fp32") + ", " + std::to_string(c.settings.ranks) +
          (c.settings.ranks == 1 ? " rank" : " ranks") + ", Adam: " + parts_text(c.parts);
  std::uint64_t activations = need_of(c).activations;
  return text + "; activations and temporary buffers, with this request: " + bytes_text(activations);
}

// ---- the cases, and what to do ----

void add_ways(const Case& c, AllocStory& story) {
  if (!c.total) return;
  std::vector<std::string> ways = ways_to_fit(c.settings, need_of(c));
  if (!c.settings.parameters) return;
  if (ways.size() > kMostWays) ways.resize(kMostWays);
  for (std::string& way : ways) story.fix.push_back("By these estimates: " + std::move(way) + ".");
  bool said = std::any_of(ways.begin(), ways.end(), [](const std::string& way) {
    return way.find("activation checkpointing") != way.npos;
  });
  if (said || c.settings.checkpointing_block)
    story.fix.push_back(
        "Activation checkpointing is switched on in the model (`model.gradient_checkpointing_enable()`, or "
        "torch.utils.checkpoint around each block); " +
        std::string(
            c.settings.checkpointing_block && !c.settings.recomputes
                ? "the `activation_checkpointing` block of this job's DeepSpeed configuration switches "
                  "nothing "
                  "on by itself, and no recomputation was seen."
                : "an `activation_checkpointing` block in the DeepSpeed configuration alone does nothing."));
}

void tell_fragmentation(const Case& c, AllocStory& story) {
  if (story.summary.empty())
    story.summary = ": " + bytes_text(c.allocator->unused()) +
                    " of its allocator are not in use, in pieces that are too small";
  story.evidence.push_back(bytes_text(c.allocator->unused()) +
                           " are reserved by torch and not in use, more than was "
                           "asked for, in pieces that are too small: fragmentation");
  if (expandable_segments(c.view, c.rank)) {
    story.evidence.push_back(
        "segments that grow are on (expandable_segments): what is left of them is in use in parts");
    story.fix.push_back(
        "Free what outlives the step before the large request, or ask for the large piece first and keep it: "
        "what lies in between keeps the rest in pieces.");
    return;
  }
  story.fix.push_back(
      "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True (before the first allocation): segments that "
      "grow leave "
      "no pieces too small to use.");
}

// GatheredParameters of the user's own, in a function that saves or elsewhere.
bool tell_own_gather(const Case& c, AllocStory& story) {
  if (!in_gather(c.view, c.failure) || in_save_phase(c.view, c.rank, c.failure)) return false;
  std::string function = own_save(c.view, c.failure);
  story.summary = function.empty() ? ", while weights are gathered" : ", while saving";
  if (!function.empty()) story.evidence.push_back("it failed in `" + function + "`: on the device, not in host memory");
  std::string whole = c.settings.bytes ? "; the whole model is " + bytes_text(c.settings.bytes) : "";
  story.evidence.push_back(
      "GatheredParameters makes all weights that it is given whole on every rank's device, at once" + whole);
  story.fix = {
      "Gather only what is needed (what was trained, not the frozen weights), and a part of it at a time: "
      "`GatheredParameters(list(module.parameters(recurse=False)))` for each module, with what is kept of it copied to "
      "the host (`.cpu()`) before the next.",
      "For a whole model save sharded (`save_checkpoint`, then zero_to_fp32.py on the host)."};
  return true;
}

bool tell_save(const Case& c, AllocStory& story) {
  if (!c.in("save")) return false;
  story.summary = ", while saving";
  if (std::string function = own_save(c.view, c.failure);
      !function.empty() && !in_save_phase(c.view, c.rank, c.failure)) {
    story.evidence.push_back("it failed in `" + function + "`: on the device, not in host memory");
    story.fix = {
        "Copy to the host piece by piece (`.cpu()`, with FSDP `StateDictOptions(full_state_dict=True, "
        "cpu_offload=True)`) instead of putting the whole together on the device, or save sharded "
        "(torch.distributed.checkpoint).",
        "Free memory before saving: `optimizer.zero_grad(set_to_none=True)`, drop the last loss and outputs, then "
        "`torch.cuda.empty_cache()`."};
    return true;
  }
  story.evidence.push_back("it failed in the `save` phase: on the device, not in host memory");
  if (c.settings.gather_16bit)
    story.evidence.push_back(
        "stage3_gather_16bit_weights_on_model_save is on: each weight is gathered whole on every "
        "rank's device, one after the other, and the copy of the whole model grows in the host "
        "memory of rank 0");
  story.fix = {
      "Free memory before saving: `optimizer.zero_grad(set_to_none=True)`, drop the last loss and outputs, "
      "then "
      "`get_accelerator().empty_cache()` on all ranks.",
      "Save sharded (`save_checkpoint`, then zero_to_fp32.py on the host) instead of gathering weights on "
      "the device; "
      "`stage3_gather_16bit_weights_on_model_save: false` where the 16-bit file is not needed."};
  return true;
}

bool tell_evaluation(const Case& c, AllocStory& story) {
  if (!in_evaluation(c.view, c.rank, c.failure)) return false;
  story.summary = ", in an evaluation";
  if (has_longer_batch(c.failure, c.steps))
    story.summary += ": its batch is " + batch_text(c.failure.batch) + ", in training usually " +
                     batch_text(usual_batch(c.steps)->batch);
  story.evidence.push_back("the newest forward pass was one of a model that is not in training");
  story.fix = {
      "Keep nothing of an evaluation on the device that is not needed: of each output `.item()`, the arg-max "
      "or "
      "`.cpu()` instead of a list of outputs (Hugging Face Trainer: `eval_accumulation_steps`, "
      "`preprocess_logits_for_metrics`).",
      "Evaluate under `torch.no_grad()`, with a smaller batch of its own (`per_device_eval_batch_size`), and "
      "once "
      "before the first step, so that it fails at once or never."};
  return true;
}

bool tell_longer_batch(const Case& c, AllocStory& story) {
  if (!has_longer_batch(c.failure, c.steps)) return false;
  story.summary = ": its batch is " + batch_text(c.failure.batch) + ", usually " +
                  batch_text(usual_batch(c.steps)->batch);
  const MemoryStep& highest = **std::max_element(
      c.steps.begin(), c.steps.end(),
      [](const MemoryStep* a, const MemoryStep* b) { return used_peak(*a) < used_peak(*b); });
  story.evidence.push_back("a longer sample than before: " + std::to_string(c.steps.size()) +
                           " steps went well, the highest (step " + std::to_string(highest.step) +
                           ", batch " + batch_text(highest.batch) + ") with " +
                           bytes_text(used_peak(highest)));
  story.fix = {
      "Bound what a batch may hold: cut or drop samples above a length (`cutoff_len`, `max_length`), or pack "
      "to a fixed "
      "number of tokens.",
      "Group samples by length and begin with the longest batch: then it fails in the first step or never."};
  return true;
}

// "process 4711", or the rank of this job that it is.
std::string user_text(const Case& c, const CardUser& user) {
  std::string text = "process " + std::to_string(user.pid);
  for (const RankView& rank : c.view.ranks) {
    bool is_it = rank.records().pid == user.pid && rank.records().host == c.rank.records().host;
    if (is_it) text += " (rank " + std::to_string(rank.rank) + " of this job)";
  }
  return text;
}

void add_wrapper(const Case& c, AllocStory& story) {
  if (fact_of(c.view, c.rank, {"model.wrapper"}).empty()) return;
  story.fix.insert(
      story.fix.begin(),
      "The model is wrapped in torch.nn.DataParallel, which works on all cards of the machine and keeps "
      "outputs and gradients on the first one: use DistributedDataParallel or DeepSpeed.");
}

const char* kWhoIsOnTheCard =
    "Look with `nvidia-smi` who else is on this card: another process, or other ranks of this job that "
    "went to it (`cuda` without an index, `torch.load` without `map_location`, before "
    "`torch.cuda.set_device(local_rank)`).";

// Without what other processes hold of its card the request would have been satisfied.
bool tell_other_process(const Case& c, AllocStory& story) {
  std::string list;
  for (const CardUser& user : c.users) {
    list += (list.empty() ? "" : ", ") + user_text(c, user) + " " + bytes_text(user.bytes);
  }
  if (list.empty() || !c.total) return false;
  story.evidence.push_back("by NVML, as torch's message says, others have taken of its card: " + list);
  std::uint64_t sum = taken_in_its_place(c.users, c.failure);
  if (sum == 0) return false;
  story.summary = ": " + bytes_text(sum) + " of its card are taken by " +
                  (c.users.size() == 1 ? "another process" : "other processes") + " (" + list + ")";
  story.fix = {kWhoIsOnTheCard,
               "What is meant to share the card needs its part set aside: a server's share "
               "(`gpu_memory_utilization` of vLLM), `torch.cuda.set_per_process_memory_fraction`, or a card "
               "of its own."};
  add_wrapper(c, story);
  return true;
}

// The others, which do the same work, are far from their limit.
bool tell_one_card(const Case& c, AllocStory& story) {
  std::uint64_t most = 0, most_batch = 0, most_other = 0;
  std::size_t others = 0;
  for (const RankView& rank : c.view.ranks) {
    if (&rank == &c.rank) continue;
    const AllocFailure* failure = last_alloc_failure(c.view, rank);
    std::vector<const MemoryStep*> steps = memory_steps(rank, 8);
    if (steps.empty() && !failure) return false;  // nothing is known of it
    ++others;
    if (failure) {
      Case theirs = case_of(c.view, rank, *failure);
      most = std::max(most, theirs.in_use() + failure->size);
      most_batch = std::max(most_batch, elements(failure->batch));
      most_other = std::max(most_other, theirs.other.value_or(0));
    }
    for (const MemoryStep* step : steps) {
      most = std::max(most, used_peak(*step));
      most_batch = std::max(most_batch, elements(step->batch));
      most_other = std::max(most_other, unaccounted(*step).value_or(0));
    }
  }
  std::uint64_t mine = c.in_use() + c.failure.size, rest = c.other.value_or(0);
  auto far_less = [](std::uint64_t theirs, std::uint64_t own) {
    return static_cast<double>(theirs) < kFarLess * static_cast<double>(own);
  };
  if (others == 0 || !far_less(most + most_other, mine + rest)) return false;
  bool is_taken = rest > most_other + mine / 4;
  story.summary = "; the others need at most " + bytes_text(most);
  if (is_taken)
    story.summary += ", and of its card some " + bytes_text(rest - most_other) +
                     " more than of theirs are taken by no call of this job: by another process, it seems";
  story.evidence.push_back("only this rank is short of memory: it wants " + bytes_text(mine) +
                           (c.other ? ", and " + bytes_text(rest) +
                                          " are taken by nobody's known calls (elsewhere at "
                                          "most " +
                                          bytes_text(most_other) + ")"
                                    : ""));
  if (is_taken)
    story.fix = {kWhoIsOnTheCard};
  else if (most_batch && far_less(most_batch, elements(c.failure.batch)))
    story.fix = {"Its batch is larger than the others' (" + batch_text(c.failure.batch) +
                 "): give every rank the same number of tokens."};
  else
    story.fix = {
        "Look for what only this rank keeps on its card: outputs and metrics gathered on it, a second model "
        "or "
        "an EMA copy; torch.nn.DataParallel keeps everything on the first card: use DistributedDataParallel "
        "or "
        "DeepSpeed."};
  add_wrapper(c, story);
  return true;
}

void tell_nvme(const Case& c, AllocStory& story) {
  std::string text = nvme_text(c.settings);
  if (text.empty()) return;
  story.evidence.push_back(std::move(text));
  story.fix.push_back(
      "With NVMe offload the buffers count: lower offload_param.buffer_count or buffer_size, and "
      "max_in_cpu where host memory is short; nvme_path must lie on a local NVMe drive.");
}

}  // namespace

AllocStory story_of(const JobView& view, const RankView& rank, const AllocFailure& failure) {
  Case c = case_of(view, rank, failure);
  AllocStory story;
  bool gathers = tell_own_gather(c, story);
  bool is_fragmented = has_pieces(c) && !gathers;  // of the many requests of a gather only this one is known
  bool is_special = gathers || tell_save(c, story) || tell_other_process(c, story) || tell_evaluation(c, story) ||
                    tell_longer_batch(c, story) || tell_one_card(c, story);
  std::vector<std::string> special = std::move(story.evidence);
  story.evidence = {"allocated by the process through CUDA at that moment: " + bytes_text(c.taken)};
  if (std::string line = holders_text(c); !line.empty() && (c.allocator || c.other.value_or(0)))
    story.evidence.push_back(line);
  story.evidence.insert(story.evidence.end(), special.begin(), special.end());
  if (is_fragmented) tell_fragmentation(c, story);
  if (std::string line = batch_against_usual(failure.batch, c.steps); !line.empty())
    story.evidence.push_back(line);
  if (!is_special && c.in_first_step() && c.settings.parameters && failure.step != job::kNoStep)
    story.summary = ": the first step does not fit";
  if (std::string line = estimate_text(c); !line.empty() && !gathers && !c.in("save")) story.evidence.push_back(line);
  if (!is_special || c.in_first_step()) add_ways(c, story);
  tell_nvme(c, story);
  if (!is_special && story.fix.empty())
    story.fix.push_back(
        "Make the step smaller on this rank: micro-batch size, sequence length, activation checkpointing, "
        "offload.");
  if (!is_special && !is_fragmented)
    story.fix.push_back(
        std::string("If the size varies from batch to batch, bound it (sort or cap by length)") +
        (expandable_segments(view, rank) ? "."
                                         : "; if much is reserved but unused, try "
                                           "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True."));
  return story;
}

}  // namespace dshang::detect
