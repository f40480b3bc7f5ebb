// The model's config.json beside tensor parallelism and "auto".
#include <cmath>

#include "doctor/model.h"
#include "doctor/rule.h"

namespace dshang::doctor {
namespace {

// module_inject/containers of DeepSpeed 0.19.8: families for which kernel injection has been written.
constexpr const char* kContainers[] = {"GPT2", "GPTNeo",     "GPTJ",  "GPTNeoX",  "OPT",      "Bloom",
                                       "Bert", "DistilBert", "Llama", "InternLM", "Megatron", "CLIP"};

int tensor_parallel(const Facts& facts) {
  if (facts.tp_size) return *facts.tp_size;
  if (!facts.config || !facts.config->readable()) return 1;
  return whole_part(facts.config->number("tensor_parallel.autotp_size").value_or(1));
}

void divisibility(const Facts& facts, Hits& hits) {
  if (!facts.model) return;
  int tp = tensor_parallel(facts);
  auto heads = heads_of(facts.model->config), kv = kv_heads_of(facts.model->config);
  if (tp < 2 || !heads) return;
  std::string parallel = "tensor parallel " + std::to_string(tp);
  if (facts.kernel_inject == true && std::fmod(*heads, tp) != 0)
    hits.add(facts.model->path, number_text(*heads) + " attention heads cannot be split evenly by " +
                                    parallel + ", as injected kernels must");
  if (kv && tp > *kv)
    hits.add(
        facts.model->path,
        parallel + " is more than the " + number_text(*kv) + " key-value heads: a rank gets an empty shard",
        "", Severity::kWrongResult);
}

bool is_auto(const Facts& facts, const char* key) {
  return facts.config->is_auto("zero_optimization." + std::string(key));
}

void hidden_size(const Facts& facts, Hits& hits) {
  if (!facts.model || facts.trainer != Trainer::kHf || !facts.config || !facts.config->readable()) return;
  const Json& model = facts.model->config;
  if (model.contains("hidden_size") || model.contains("hidden_sizes")) return;
  std::string keys;
  for (const char* key :
       {"reduce_bucket_size", "stage3_prefetch_bucket_size", "stage3_param_persistence_threshold"}) {
    if (is_auto(facts, key)) keys += (keys.empty() ? "" : ", ") + std::string(key);
  }
  if (!keys.empty())
    hits.add(facts.model->path,
             keys + " are \"auto\", and the model's config has no hidden_size at its top level");
}

void parallel_size(const Facts& facts, Hits& hits) {
  if (!facts.world_size) return;
  int ranks = *facts.world_size;
  std::string started = std::to_string(ranks) + (ranks == 1 ? " rank is started" : " ranks are started");
  if (facts.tp_size && *facts.tp_size > ranks)
    hits.add("tp_size", "tp_size is " + std::to_string(*facts.tp_size) + ", " + started);
  if (!facts.config || !facts.config->readable()) return;
  auto size = facts.config->number("tensor_parallel.autotp_size");
  if (size && *size > 1 && ranks % whole_part(*size) != 0)
    hits.add(facts.config->place("tensor_parallel.autotp_size"),
             "autotp_size is " + number_text(*size) + ", " + started);
}

void mark(const Facts& facts, Hits& hits) {
  if (facts.model && facts.model->marked)
    hits.add(facts.model->path,
             "a byte order mark stands before the model's config, and transformers stops there");
}

void injection(const Facts& facts, Hits& hits) {
  if (!facts.model || facts.kernel_inject != true) return;
  auto names = facts.model->config.find("architectures");
  if (names == facts.model->config.end() || !names->is_array() || names->empty() ||
      !names->front().is_string())
    return;
  std::string name = names->front();
  for (const char* container : kContainers) {
    if (name.starts_with(container)) return;
  }
  hits.add(facts.model->path, "kernel injection has no container for " + name);
}

void empty_adapter(const Facts& facts, Hits& hits, bool adapter) {
  if (!facts.checkpoint) return;
  for (const Checkpoint::File& file : facts.checkpoint->files) {
    bool is_adapter = file.path.find("adapter_model") != std::string::npos;
    if (file.empty_tensors && is_adapter == adapter)
      hits.add(facts.checkpoint->path + "/" + file.path,
               file.path + " holds tensors without values (shape [0])");
  }
}

void empty_weights(const Facts& facts, Hits& hits) { empty_adapter(facts, hits, false); }
void empty_lora(const Facts& facts, Hits& hits) { empty_adapter(facts, hits, true); }

}  // namespace

const Rules& model_rules() {
  static const Rules rules = {
      {"12.8-1", Area::kModel, Severity::kWillFail,
       "attention heads, key-value heads, tp_size or autotp_size, kernel injection",
       "injected kernels and heads that do not divide, or more ranks than key-value heads",
       "kernels split heads evenly; AutoTP splits by key-value head",
       "Choose a tensor-parallel size that divides the key-value heads.",
       "the attention_heads require to be divisible by the world_size", divisibility},
      {"X-48", Area::kModel, Severity::kWillFail,
       "\"auto\" bucket sizes under Hugging Face, the model's hidden_size",
       "hidden_size is not at the top level", "the Trainer computes the buckets from it",
       "Write numbers for the three keys.",
       "The model's config file has neither `hidden_size` nor `hidden_sizes` entry", hidden_size},
      {"D-06", Area::kModel, Severity::kWillFail, "how the model's config.json begins", "with a byte order mark",
       "transformers reads it as UTF-8 without one, and strictly", "Save it as UTF-8 without a mark.",
       "It looks like the config file at '…' is not a valid JSON file", mark},
      {"X-39", Area::kConfig, Severity::kWrongResult, "tp_size, autotp_size, number of ranks",
       "more than the ranks, or no divisor of them", "the group is built from fewer ranks without an error",
       "Start as many ranks as tensor parallelism needs, or a multiple.",
       "https://www.deepspeed.ai/tutorials/automatic-tensor-parallelism/", parallel_size},
      {"12.8-2", Area::kModel, Severity::kWrongResult, "replace_with_kernel_inject, the model's architecture",
       "no container for it", "a kernel or container does not match the model",
       "Use replace_with_kernel_inject=False (AutoTP); compare logits with the plain model.",
       "AutoTP not supported for model", injection},
      {"X-28", Area::kCheckpoint, Severity::kWrongResult, "headers of *.safetensors", "tensors of shape [0]",
       "the state dict was taken in stage 3 without gathering",
       "Save with trainer.save_model() or engine.save_16bit_model(); the ZeRO shards of that checkpoint "
       "still hold the values (zero_to_fp32.py).",
       "copying a param with shape torch.Size([0]); huggingface/transformers#20082", empty_weights},
      {"12.8-3", Area::kCheckpoint, Severity::kWrongResult, "headers of adapter_model*.safetensors",
       "tensors of shape [0]", "the adapter was saved in stage 3 without gathering",
       "Set stage3_gather_16bit_weights_on_model_save, or zero_to_fp32.py --exclude_frozen_parameters on the "
       "checkpoint.",
       "see X-28", empty_lora},
  };
  return rules;
}

}  // namespace dshang::doctor
