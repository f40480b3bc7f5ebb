// Errors of the program itself that a log names unclearly.
#include "explain/hits.h"
#include "explain/words.h"

namespace dshang::explain {
namespace {

// As the bar of the training loop tells it; it counts whole seconds.
void slow_first_step(const Entry&, const Observed& seen, Hits& hits) {
  constexpr double kSlow = 10, kTimes = 10;  // seconds, and times what the others take
  constexpr long kSteps = 4;
  const auto& bar = seen.numbers.bar;
  if (!seen.muon || !bar || bar->last < kSteps || bar->first < kSlow) return;
  if (bar->first < kTimes * bar->each()) return;
  Hits::Hit hit;
  hit.place = bar->place;
  hit.speakers = {bar->who};
  hit.summary = "the first step took " + number_text(bar->first) + " s, those behind it " +
                number_text(bar->each()) + " s each: Muon's iteration is compiled in it";
  hits.add(hit);
}

}  // namespace

const Entries& training_entries() {
  static const Entries entries = {
      {"X-42",
       Severity::kWillFail,
       "there is nothing to train",
       {{R"(optimizer got an empty parameter list)"}},
       "torch 1.x-2.14",
       "LoRA's targets matched no module, or all parameters are frozen",
       "Check the names of the targets; print the number of trainable parameters.",
       "torch.optim"},
      {"12.13-2",
       Severity::kAdvice,
       "Muon's first step is slow",
       {},
       "DeepSpeed 0.17.6-0.19.8",
       "its Newton-Schulz iteration is compiled by torch.compile when it is first called, once for each "
       "shape",
       "Nothing is wrong. A TORCHINDUCTOR_CACHE_DIR on a local disk keeps what was compiled; a time-out must "
       "be "
       "longer than "
       "the slowest rank's compilation.",
       "DeepSpeed, runtime/zero/muon/original_muon.py",
       Role::kCause,
       {},
       slow_first_step},
      {"E-12",
       Severity::kWillFail,
       "a kernel found an index out of range",
       {{R"(CUDA error: device-side assert triggered)"},
        {R"(Assertion `srcIndex < srcSelectDimSize` failed)"},
        {R"(Assertion `t >= 0 && t < n_classes` failed)"}},
       "torch 1.x-2.14",
       "a token id beyond the vocabulary, or a label beyond the number of classes",
       "Check the largest token id against vocab_size (resize_token_embeddings) and the labels; "
       "CUDA_LAUNCH_BLOCKING=1 "
       "names the line.",
       "torch"},
      {"E-13",
       Severity::kWillFail,
       "a kernel read or wrote memory that is not its own",
       {{R"(an illegal memory access was encountered)"}},
       "CUDA",
       "a faulty kernel, or one that was given wrong sizes; other ranks then see NCCL errors",
       "CUDA_LAUNCH_BLOCKING=1 names the call; look for fused kernels that do not fit the versions "
       "installed.",
       "CUDA"},
      {"E-14",
       Severity::kWillFail,
       "a process crashed in native code",
       {{R"(exits with return code = -11)"},
        {R"(failed \(exitcode: -11\) local_rank: \d+)"},
        {R"(exitcode *: -11 \(pid)"},
        {R"(Fatal Python error: Segmentation fault)"}},
       "any",
       "a library: mixed builds of torch, NCCL or an operator, or memory that was overwritten",
       "PYTHONFAULTHANDLER=1 names the line; reinstall packages that hold native code for this torch.",
       "launchers"},
  };
  return entries;
}

}  // namespace dshang::explain
