// Programs that do not fit ZeRO.
#include "explain/hits.h"

namespace dshang::explain {
namespace {

constexpr std::uint64_t kAgainAndAgain = 3;

// The first pass has no trace yet, and a change now and then is no trouble.
void trace_cache(const Entry& entry, const Observed& seen, Hits& hits) {
  const Sighting* sighting = seen.sighting(entry.id);
  if (sighting && sighting->count >= kAgainAndAgain) hits.add(*sighting);
}

}  // namespace

const Entries& zero_entries() {
  static const Entries entries = {
      {"X-02",
       Severity::kWillFail,
       "a ZeRO-3 parameter is used outside its module: it is empty there",
       {{R"('weight' must be 2-D)"},
        {R"(size mismatch, got input \(\d+\), mat \(\d+x\d+\), vec \(0\))"},
        {R"(The size of tensor a \(0\) must match the size of tensor b \(\d+\))"},
        {R"(weight should have at least three dimensions)"},
        {R"(Expected weight to be of same shape as normalized_shape, but got weight of shape \[0\])"},
        {R"(Fan in and fan out can not be computed for tensor with fewer than 2 dimensions)"},
        {R"(index \d+ is out of bounds for dimension 0 with size 0)"}},
       "DeepSpeed 0.10-0.19.8",
       "the parameter is partitioned to torch.Size([0]) unless its own module runs",
       "Call the module, not its weight; `with deepspeed.zero.GatheredParameters(p):`; a second model needs "
       "its own "
       "deepspeed.initialize.",
       "huggingface/trl#600, #361; deepspeedai/DeepSpeed#2746"},
      {"X-09",
       Severity::kWillFail,
       "no_sync under ZeRO 2 or 3",
       {{R"(no_sync context manager is incompatible with gradient partitioning logic of ZeRO stage [23])"}},
       "DeepSpeed >= 0.16",
       "an older transformers or accelerate, or the program, calls no_sync for accumulation",
       "A newer transformers/accelerate, or let the engine accumulate.",
       "deepspeedai/DeepSpeed#6793; huggingface/accelerate#3481"},
      {"X-16",
       Severity::kWillFail,
       "gradient checkpointing finds parameters released before its recomputation",
       {{R"(recomputed metadata: \{'shape': torch\.Size\(\[0\]\))"}},
       "DeepSpeed < 0.19.3 with ZeRO-3",
       "frozen parameters (LoRA) and checkpointing without re-entrance",
       "DeepSpeed >= 0.19.3; `gradient_checkpointing_kwargs={\"use_reentrant\": True}`; or stage 2.",
       "huggingface/trl#2514; deepspeedai/DeepSpeed#8148"},
      {"X-17",
       Severity::kWillFail,
       "a gradient is reduced twice in one backward pass",
       {{R"(The parameter \S+ has already been reduced)"}},
       "DeepSpeed < 0.18.9, stages 1 and 2",
       "a module used twice with re-entrant checkpointing, or two backward calls",
       "`use_reentrant=False`; one loss, one backward; else stage 0 or 3.",
       "deepspeedai/DeepSpeed#988; huggingface/transformers#18330"},
      {"X-18",
       Severity::kWillFail,
       "device_map with ZeRO-3",
       {{R"(DeepSpeed Zero-3 is not compatible with (`low_cpu_mem_usage=True` or with )?passing a `device_map`)"}},
       "transformers 4.x-5.24",
       "two ways of placing the weights",
       "Drop device_map; with 4-bit weights use stage 2.",
       "huggingface/accelerate#2543; huggingface/peft#306"},
      {"X-49",
       Severity::kWillFail,
       "backward is called on the loss where DeepSpeed needs engine.backward",
       {{R"(Direct calls to tensor\.backward\(\) are not supported in this configuration)"},
        {R"(loss must be a scalar tensor\. If you need to pass output gradients)"}},
       "DeepSpeed 0.19.8: stage 0 (stages 1-3 support it)",
       "loss scaling and gradient reduction hang on the engine",
       "`engine.backward(loss)`, of the mean.",
       "docs/findings.md, mixed-backward"},
      {"E-10",
       Severity::kWillFail,
       "DeepSpeed finds that the ranks disagree about the order of modules or parameters",
       {{R"(disagreement between rank0 and rank\d+)"}},
       "DeepSpeed 0.10-0.19.8",
       "the ranks run different code: a module that some leave out, another order, or another model",
       "Compare the ranks: run every module on every rank; `dshang` in the job names the module and the "
       "rank.",
       "deepspeedai/DeepSpeed#5066, #4808"},
      {"E-11",
       Severity::kSlow,
       "ZeRO-3's trace of modules is thrown away, again and again",
       {{R"(Invalidate trace cache @ step \d+.*(expected module|cache has only [1-9]))"}},
       "DeepSpeed 0.10-0.19.8",
       "the order of modules changes from pass to pass: prefetching stops",
       "Keep the order of modules equal in every pass "
       "and on every rank.",
       "docs/findings.md, trace-cache-invalid; deepspeedai/DeepSpeed#6870",
       Role::kCause,
       {},
       trace_cache},
  };
  return entries;
}

}  // namespace dshang::explain
