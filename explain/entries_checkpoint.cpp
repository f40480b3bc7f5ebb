// Saving, loading and merging checkpoints.
#include "explain/entry.h"

namespace dshang::explain {

const Entries& checkpoint_entries() {
  static const Entries entries = {
      {"12.7-1",
       Severity::kWrongResult,
       "ZeRO-3 saved no file of whole weights",
       {{R"(Did not save the model .* because `?stage3_gather_16bit_weights_on_model_save`? is False)"},
        {R"(Cannot get 16bit model weights because `stage3_gather_16bit_weights_on_model_save` in DeepSpeed config is False)"}},
       "DeepSpeed 0.10-0.19.8, accelerate",
       "the shards are not gathered by default",
       "`\"stage3_gather_16bit_weights_on_model_save\": true`, or convert the checkpoint with its "
       "zero_to_fp32.py.",
       "DeepSpeed, runtime/engine.py"},
      {"12.7-2",
       Severity::kWillFail,
       "ZeRO shards cannot be merged",
       {{R"(Unable to find 'latest' file at .+)"},
        {R"(Directory '.+' doesn't exist)", R"(zero_to_fp32|deepspeed)"},
        {R"(Expected \d+ of '\*_optim_states\.pt' under '.+' but found \d+ files)"},
        {R"(please `pip install (safetensors|huggingface_hub)`)"},
        {R"(No module named '(safetensors|huggingface_hub)')", R"(zero_to_fp32)"}},
       "DeepSpeed 0.10-0.19.8",
       "the directory of one tag instead of its parent, missing shards, or a missing package",
       "`python zero_to_fp32.py CKPT OUT_DIR` with the parent, where `latest` lies (before 0.15 the second "
       "argument is a "
       "file).",
       "DeepSpeed, utils/zero_to_fp32.py"},
      {"12.7-3",
       Severity::kWrongResult,
       "the checkpoint was not loaded: training starts from scratch",
       {{R"(Unable to find latest file at .+, if trying to load latest checkpoint)"}},
       "DeepSpeed 0.10-0.19.8",
       "the directory has no file `latest`; load_checkpoint returns (None, None) and goes on",
       "Check the returned path for None; name the parent directory, or a tag.",
       "DeepSpeed, runtime/engine.py"},
      {"12.7-4",
       Severity::kWillFail,
       "the checkpoint belongs to another number of ranks or another ZeRO stage",
       {{R"(The checkpoint being loaded used a DP world size of \d+ but the current world size is \d+\. Automatic adjustment)"},
        {R"(assert len\(self\.ckpt_list\) > 0)"},
        {R"(Required universal_checkpoint_info state is missing in checkpoint)"},
        {R"(Invalid for universal checkpoint: .+ does not exist)"}},
       "DeepSpeed 0.10-0.19.8",
       "optimizer shards belong to one way of partitioning",
       "`python -m deepspeed.checkpoint.ds_to_universal --input_folder CKPT/TAG --output_folder "
       "CKPT/TAG_universal` "
       "(stages 1, 2 of a non-Megatron model: --inject_missing_state) and `\"checkpoint\": "
       "{\"load_universal\": true}`; or "
       "load_optimizer_states=False.",
       "DeepSpeed, checkpoint/ds_to_universal.py"},
      {"12.7-5",
       Severity::kWillFail,
       "the disk is full",
       {{R"(No space left on device)"},
        {R"(PytorchStreamWriter failed writing file)"},
        {R"(basic_ios::clear: iostream error)", R"(torch/serialization\.py)"}},
       "any",
       "checkpoints hold the optimizer's state: about 14 bytes a parameter each",
       "save_total_limit=2, save less often, or save_only_model=True (then training cannot be resumed).",
       "torch.save"},
      {"12.13-4",
       Severity::kWillFail,
       "the checkpoint was written with another optimizer (Muon or AdamW)",
       {{R"(The ZeRO checkpoint parameter-alignment layout does not match the current zero_optimization\.parameter_alignment setting)"},
        {R"(KeyError: '(exp_avg|momentum_buffer)')", R"(deepspeed/)"}},
       "DeepSpeed 0.19.6+ (first), older (second)",
       "Muon and AdamW group the flat buffers differently",
       "Keep the optimizer, or `load_checkpoint(load_optimizer_states=False)`.",
       "DeepSpeed, runtime/zero"},
      {"X-07",
       Severity::kWillFail,
       "torch.load refuses a file of DeepSpeed's",
       {{R"(Unsupported global: GLOBAL deepspeed\.\S+)"}},
       "torch >= 2.6",
       "weights_only=True is the default, and the file holds objects of DeepSpeed",
       "A file of your own that you trust: `torch.load(f, weights_only=False)`, or a newer DeepSpeed.",
       "modelscope/ms-swift#5808; deepspeedai/DeepSpeed#8500"},
      {"E-16",
       Severity::kWillFail,
       "the saved weights do not fit the model",
       {{R"(size mismatch for \S+: copying a param with shape torch\.Size\(\[[\d, ]*\]\) from checkpoint)",
         "load_state_dict"},
        {R"((Missing|Unexpected) key\(s\) in state_dict: )", "load_state_dict"}},
       "torch 1.x-2.14",
       "the model was built with another size or another set of modules than the one that was saved, or its "
       "names have another "
       "prefix (module., _orig_mod., base_model.)",
       "Build the model from the configuration that lies beside the weights; strip the prefix; shards of "
       "ZeRO-3 are read by "
       "engine.load_checkpoint or zero_to_fp32.py.",
       "torch.nn.Module.load_state_dict"},
      {"X-28",
       Severity::kWrongResult,
       "the saved weights are empty",
       {{R"(copying a param with shape torch\.Size\(\[[01]\]\) from checkpoint, the shape in current model is torch\.Size\(\[\d+)"}},
       "transformers, DeepSpeed ZeRO-3",
       "state_dict() or save_pretrained() under stage 3 without gathering",
       "`trainer.save_model()`, `engine.save_16bit_model`, or zero_to_fp32.py: the checkpoint's shards still "
       "hold the values.",
       "huggingface/transformers#20082; OpenRLHF/OpenRLHF#651",
       Role::kCause,
       {"E-16"}},
  };
  return entries;
}

}  // namespace dshang::explain
