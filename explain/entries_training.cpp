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
      {"E-29",
       Severity::kWillFail,
       "a GPU's memory has an error that cannot be corrected",
       {{R"(uncorrectable ECC error encountered)"}},
       "CUDA",
       "the hardware: the program is not to blame",
       "Take the GPU out of the job; `nvidia-smi -q -d ECC,ROW_REMAPPER` shows its errors. Reset it or "
       "reboot the "
       "node; if it comes again, have it replaced.",
       "CUDA"},
      {"E-30",
       Severity::kWillFail,
       "the driver reports a failure of a GPU's hardware",
       {{R"(NVRM: Xid \(\S+\): (48|74|79|95|119|120),)"}},
       "NVIDIA's driver",
       "the number behind Xid: 48, 95 memory (ECC); 74 NVLink; 79 the GPU has fallen off the bus (power, "
       "heat, "
       "the slot); 119, 120 its system processor does not answer",
       "Take the node out of the job, reboot it, and have the GPU looked at if it comes again.",
       "NVIDIA, Xid errors"},
      {"E-31",
       Severity::kWillFail,
       "DistributedDataParallel: parameters got no gradient in the step before",
       {{R"(Expected to have finished reduction in the prior iteration before starting a new one)"}},
       "torch 1.x-2.14",
       "some parameters did not take part in the loss (a branch that is not always run, an output that is "
       "not "
       "used)",
       "Use all outputs in the loss, freeze what is not trained, or find_unused_parameters=True; "
       "TORCH_DISTRIBUTED_DEBUG=DETAIL names the parameters.",
       "torch, nn/parallel/distributed.py"},
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
