// Inference and merging.
#include "explain/entry.h"

namespace dshang::explain {

const Entries& inference_entries() {
  static const Entries entries = {
      {"12.8-1",
       Severity::kWillFail,
       "tensor or sequence parallelism does not divide the model",
       {{R"(the attention_heads require to be divisible by the world_size)"},
        {R"(Dimension size must be divisible by granularity)"},
        {R"(Attention head count \d+ is not divisible by SP size \d+)"}},
       "DeepSpeed 0.10-0.19.8",
       "injected kernels split heads evenly; AutoTP splits by key-value head",
       "A tp_size that divides the key-value heads.",
       "DeepSpeed, module_inject"},
      {"12.8-2",
       Severity::kWrongResult,
       "DeepSpeed has no kernels for this model: its output would be garbage",
       {{R"(AutoTP not supported for model)"}},
       "DeepSpeed 0.12-0.19.8",
       "no container fits the model or its version",
       "`replace_with_kernel_inject=False`, and compare the logits with plain "
       "Hugging Face in fp32; vLLM and SGLang serve newer models.",
       "DeepSpeed, module_inject"},
      {"12.8-3",
       Severity::kWrongResult,
       "the LoRA adapter was saved empty",
       {{R"(lora_[AB]\S*: copying a param with shape torch\.Size\(\[[01]?\]\) from checkpoint)"}},
       "peft, DeepSpeed ZeRO-3",
       "it was saved under stage 3 without gathering",
       "Hugging Face gathers it with `\"stage3_gather_16bit_weights_on_model_save\": true`; from the shards: "
       "zero_to_fp32.py "
       "--exclude_frozen_parameters. A merge of the whole model is not needed.",
       "huggingface/peft",
       Role::kCause,
       {"X-28", "E-16"}},
  };
  return entries;
}

}  // namespace dshang::explain
