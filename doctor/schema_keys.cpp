// Read from DeepSpeed 0.19.8: runtime/config.py and the pydantic models of its sections.
#include <cstring>

#include "doctor/schema.h"

namespace dshang::doctor {
namespace {

constexpr const char* kZero = "zero_optimization";
constexpr const char* kOffloadParam = "zero_optimization.offload_param";
constexpr const char* kOffloadOptimizer = "zero_optimization.offload_optimizer";
constexpr const char* kZenflow = "zero_optimization.zenflow";
constexpr const char* kLeaf = "zero_optimization.leaf_module";
constexpr const char* kDevices = "none cpu nvme";

// clang-format off
const std::vector<SectionKey> kSectionKeys = {
    {kZero, "stage", Kind::kOneOf, Limit::kNone, "0 1 2 3"},
    {kZero, "contiguous_gradients", Kind::kBool},
    {kZero, "reduce_scatter", Kind::kBool},
    {kZero, "reduce_bucket_size", Kind::kInt, Limit::kPositive},
    {kZero, "use_multi_rank_bucket_allreduce", Kind::kBool},
    {kZero, "allgather_partitions", Kind::kBool},
    {kZero, "allgather_bucket_size", Kind::kInt, Limit::kNotNegative},
    {kZero, "overlap_comm", Kind::kBool},
    {kZero, "compute_grad_norm", Kind::kBool},
    {kZero, "load_from_fp32_weights", Kind::kBool},
    {kZero, "elastic_checkpoint", Kind::kBool},
    {kZero, "offload_param", Kind::kBlock},
    {kZero, "offload_optimizer", Kind::kBlock},
    {kZero, "zenflow", Kind::kBlock},
    {kZero, "sub_group_size", Kind::kInt, Limit::kNotNegative},
    {kZero, "cpu_offload_param", Kind::kBool},
    {kZero, "cpu_offload_use_pin_memory", Kind::kBool},
    {kZero, "cpu_offload", Kind::kBool},
    {kZero, "stage3_prefetch_bucket_size", Kind::kInt, Limit::kNotNegative},
    {kZero, "prefetch_bucket_size", Kind::kInt, Limit::kNotNegative},
    {kZero, "stage3_param_persistence_threshold", Kind::kInt, Limit::kNotNegative},
    {kZero, "param_persistence_threshold", Kind::kInt, Limit::kNotNegative},
    {kZero, "stage3_model_persistence_threshold", Kind::kInt, Limit::kNotNegative},
    {kZero, "model_persistence_threshold", Kind::kInt, Limit::kNotNegative},
    {kZero, "stage3_max_live_parameters", Kind::kInt, Limit::kNotNegative},
    {kZero, "max_live_parameters", Kind::kInt, Limit::kNotNegative},
    {kZero, "stage3_max_reuse_distance", Kind::kInt, Limit::kNotNegative},
    {kZero, "max_reuse_distance", Kind::kInt, Limit::kNotNegative},
    {kZero, "stage3_gather_16bit_weights_on_model_save", Kind::kBool},
    {kZero, "gather_16bit_weights_on_model_save", Kind::kBool},
    {kZero, "stage3_gather_fp16_weights_on_model_save", Kind::kBool},
    {kZero, "stage3_module_granularity_threshold", Kind::kInt},
    {kZero, "module_granularity_threshold", Kind::kInt},
    {kZero, "stage3_use_all_reduce_for_fetch_params", Kind::kBool},
    {kZero, "use_all_reduce_for_fetch_params", Kind::kBool},
    {kZero, "stage3_allgather_sequential", Kind::kBool},
    {kZero, "allgather_sequential", Kind::kBool},
    {kZero, "ignore_unused_parameters", Kind::kBool},
    {kZero, "legacy_stage1", Kind::kBool},
    {kZero, "round_robin_gradients", Kind::kBool},
    {kZero, "parameter_alignment", Kind::kBool},
    {kZero, "zero_hpz_partition_size", Kind::kInt, Limit::kNotNegative},
    {kZero, "zero_quantized_weights", Kind::kBool},
    {kZero, "zero_quantized_nontrainable_weights", Kind::kBool},
    {kZero, "zero_quantized_gradients", Kind::kBool},
    {kZero, "memory_efficient_linear", Kind::kBool},
    {kZero, "pipeline_loading_checkpoint", Kind::kBool},
    {kZero, "override_module_apply", Kind::kBool},
    {kZero, "log_trace_cache_warnings", Kind::kBool},
    {kZero, "enable_sanity_checks", Kind::kBool},
    {kZero, "save_muon_momentum_buffer_in_memory", Kind::kBool},
    {kZero, "leaf_module", Kind::kBlock},

    {kOffloadParam, "device", Kind::kOneOf, Limit::kNone, kDevices},
    {kOffloadParam, "nvme_path", Kind::kText},
    {kOffloadParam, "buffer_count", Kind::kInt, Limit::kNotNegative},
    {kOffloadParam, "buffer_size", Kind::kInt, Limit::kNotNegative},
    {kOffloadParam, "max_in_cpu", Kind::kInt, Limit::kNotNegative},
    {kOffloadParam, "pin_memory", Kind::kBool},

    {kOffloadOptimizer, "device", Kind::kOneOf, Limit::kNone, kDevices},
    {kOffloadOptimizer, "nvme_path", Kind::kText},
    {kOffloadOptimizer, "buffer_count", Kind::kInt, Limit::kNotNegative},
    {kOffloadOptimizer, "pin_memory", Kind::kBool},
    {kOffloadOptimizer, "pipeline_read", Kind::kBool},
    {kOffloadOptimizer, "pipeline_write", Kind::kBool},
    {kOffloadOptimizer, "fast_init", Kind::kBool},
    {kOffloadOptimizer, "ratio", Kind::kNumber, Limit::kShare},
    {kOffloadOptimizer, "super_offload", Kind::kBool},
    {kOffloadOptimizer, "cpuadam_cores_perc", Kind::kNumber, Limit::kShare},

    {kZenflow, "topk_ratio", Kind::kNumber, Limit::kInnerShare},
    {kZenflow, "select_strategy", Kind::kText},
    {kZenflow, "select_interval", Kind::kAny},
    {kZenflow, "update_interval", Kind::kAny},
    {kZenflow, "overlap_step", Kind::kBool},
    {kZenflow, "offload", Kind::kBool},
    {kZenflow, "auto_ratio", Kind::kNumber, Limit::kShare},
    {kZenflow, "full_warm_up_rounds", Kind::kInt},
    {kZenflow, "pt_reserved_cores_perc", Kind::kNumber, Limit::kShare},
    {kZenflow, "steps_per_epoch", Kind::kInt},

    {kLeaf, "classes", Kind::kList},
    {kLeaf, "names", Kind::kList},
    {kLeaf, "name_suffixes", Kind::kList},

    {"fp16", "enabled", Kind::kBool},
    {"fp16", "auto_cast", Kind::kBool},
    {"fp16", "loss_scale", Kind::kNumber},
    {"fp16", "initial_scale_power", Kind::kInt},
    {"fp16", "loss_scale_window", Kind::kInt},
    {"fp16", "hysteresis", Kind::kInt},
    {"fp16", "consecutive_hysteresis", Kind::kBool},
    {"fp16", "min_loss_scale", Kind::kInt},
    {"fp16", "fp16_master_weights_and_grads", Kind::kBool},

    {"bf16", "enabled", Kind::kBool},
    {"bf16", "immediate_grad_update", Kind::kBool},
    {"bf16", "check_grad_overflow", Kind::kBool},
    {"bf16", "bf16_master_weights_and_grads", Kind::kBool},
    {"bf16", "bf16_optimizer_states", Kind::kBool},

    {"tensor_parallel", "dtype", Kind::kAny},
    {"tensor_parallel", "autotp_size", Kind::kInt},
    {"tensor_parallel", "tp_overlap_comm", Kind::kBool},
    {"tensor_parallel", "vocab_parallel_lm_head", Kind::kBool},
    {"tensor_parallel", "vocab_parallel_ce_backend", Kind::kOneOf, Limit::kNone, "torch liger"},
    {"tensor_parallel", "tensor_parallel", Kind::kBlock},
    {"tensor_parallel", "tp", Kind::kBlock},
    {"tensor_parallel", "injection_policy_tuple", Kind::kAny},
    {"tensor_parallel", "partition_config", Kind::kAny},
    {"tensor_parallel", "preset_model", Kind::kText},
    {"tensor_parallel", "keep_module_on_host", Kind::kBool},
    {"tensor_parallel", "replace_with_kernel_inject", Kind::kBool},
    {"tensor_parallel", "kernel_inject", Kind::kBool},

    {"comms_logger", "enabled", Kind::kBool},
    {"comms_logger", "prof_all", Kind::kBool},
    {"comms_logger", "prof_ops", Kind::kList},
    {"comms_logger", "verbose", Kind::kBool},
    {"comms_logger", "debug", Kind::kBool},

    {"tensorboard", "enabled", Kind::kBool},
    {"tensorboard", "output_path", Kind::kText},
    {"tensorboard", "job_name", Kind::kText},

    {"wandb", "enabled", Kind::kBool},
    {"wandb", "group", Kind::kText},
    {"wandb", "team", Kind::kText},
    {"wandb", "project", Kind::kText},

    {"csv_monitor", "enabled", Kind::kBool},
    {"csv_monitor", "output_path", Kind::kText},
    {"csv_monitor", "job_name", Kind::kText},

    {"comet", "enabled", Kind::kBool},
    {"comet", "samples_log_interval", Kind::kInt},
    {"comet", "project", Kind::kText},
    {"comet", "workspace", Kind::kText},
    {"comet", "api_key", Kind::kText},
    {"comet", "experiment_name", Kind::kText},
    {"comet", "experiment_key", Kind::kText},
    {"comet", "online", Kind::kBool},
    {"comet", "mode", Kind::kText},

    {"hybrid_engine", "enabled", Kind::kBool},
    {"hybrid_engine", "max_out_tokens", Kind::kInt, Limit::kPositive},
    {"hybrid_engine", "inference_tp_size", Kind::kInt},
    {"hybrid_engine", "release_inference_cache", Kind::kBool},
    {"hybrid_engine", "pin_parameters", Kind::kBool},
    {"hybrid_engine", "tp_gather_partition_size", Kind::kInt},
    {"hybrid_engine", "enable_cuda_graph", Kind::kBool},

    {"compile", "deepcompile", Kind::kBool},
    {"compile", "autoep_non_moe", Kind::kBool},
    {"compile", "free_activation", Kind::kBool},
    {"compile", "free_activation_threshold", Kind::kInt},
    {"compile", "offload_activation", Kind::kBool},
    {"compile", "offload_activation_pin_memory", Kind::kBool},
    {"compile", "offload_opt_states", Kind::kBool},
    {"compile", "double_buffer", Kind::kBool},
    {"compile", "symmetric_memory", Kind::kBool},
    {"compile", "debug_log", Kind::kBool},
    {"compile", "offload_parameters", Kind::kBool},
    {"compile", "sync_before_reduce", Kind::kBool},
    {"compile", "sync_after_reduce", Kind::kBool},
    {"compile", "sync_before_allgather", Kind::kBool},
    {"compile", "sync_after_allgather", Kind::kBool},
    {"compile", "keep_int_input_tensors", Kind::kBool},
    {"compile", "keep_all_input_tensors", Kind::kBool},
    {"compile", "passes", Kind::kList},
};

const std::vector<TopKey> kTopKeys = {
    {"train_batch_size", TopKind::kNumber},
    {"train_micro_batch_size_per_gpu", TopKind::kNumber},
    {"gradient_accumulation_steps", TopKind::kNumber},
    {"managed_gradient_accumulation", TopKind::kBool},
    {"steps_per_print", TopKind::kNumber},
    {"dump_state", TopKind::kBool},
    {"disable_python_gc", TopKind::kBool},
    {"disable_allgather", TopKind::kBool},
    {"communication_data_type", TopKind::kOther},
    {"seq_parallel_communication_data_type", TopKind::kOther},
    {"prescale_gradients", TopKind::kBool},
    {"gradient_predivide_factor", TopKind::kNumber},
    {"gradient_allreduce_op", TopKind::kOther},
    {"zero_optimization", TopKind::kCheckedBlock},
    {"zero_allow_untested_optimizer", TopKind::kBool},
    {"zero_force_ds_cpu_optimizer", TopKind::kBool},
    {"activation_checkpointing", TopKind::kBlock},
    {"comms_logger", TopKind::kCheckedBlock},
    {"tensorboard", TopKind::kCheckedBlock},
    {"wandb", TopKind::kCheckedBlock},
    {"csv_monitor", TopKind::kCheckedBlock},
    {"comet", TopKind::kCheckedBlock},
    {"monitor", TopKind::kOther},
    {"gradient_clipping", TopKind::kNumber},
    {"fp16", TopKind::kCheckedBlock},
    {"bf16", TopKind::kCheckedBlock},
    {"bfloat16", TopKind::kCheckedBlock},
    {"torch_autocast", TopKind::kBlock},
    {"optimizer", TopKind::kBlock},
    {"scheduler", TopKind::kBlock},
    {"flops_profiler", TopKind::kBlock},
    {"wall_clock_breakdown", TopKind::kBool},
    {"memory_breakdown", TopKind::kBool},
    {"autotuning", TopKind::kBlock},
    {"use_data_before_expert_parallelism", TopKind::kBool},
    {"hybrid_engine", TopKind::kCheckedBlock},
    {"pipeline", TopKind::kBlock},
    {"data_efficiency", TopKind::kBlock},
    {"checkpoint", TopKind::kBlock},
    {"datastates_ckpt", TopKind::kBlock},
    {"data_types", TopKind::kBlock},
    {"aio", TopKind::kBlock},
    {"dataloader_drop_last", TopKind::kBool},
    {"log_level", TopKind::kOther},
    {"weight_quantization", TopKind::kBlock},
    {"compile", TopKind::kCheckedBlock},
    {"timers", TopKind::kBlock},
    {"tensor_parallel", TopKind::kCheckedBlock},
    {"expert_parallel", TopKind::kBlock},
    {"vocabulary_size", TopKind::kNumber},
    {"sequence_parallel_size", TopKind::kNumber},
    {"seed", TopKind::kOther},
};
// clang-format on

// The legacy name has the keys of the new one.
std::string_view modern(std::string_view section) { return section == "bfloat16" ? "bf16" : section; }

}  // namespace

const std::vector<TopKey>& top_keys() { return kTopKeys; }

const TopKey* top_key(std::string_view name) {
  for (const TopKey& key : kTopKeys) {
    if (key.name == name) return &key;
  }
  return nullptr;
}

bool is_section(std::string_view path) {
  for (const SectionKey& key : kSectionKeys) {
    if (key.section == modern(path)) return true;
  }
  return false;
}

const SectionKey* section_key(std::string_view section, std::string_view name) {
  for (const SectionKey& key : kSectionKeys) {
    if (key.section == modern(section) && key.name == name) return &key;
  }
  return nullptr;
}

std::vector<std::string> keys_of(std::string_view section) {
  std::vector<std::string> names;
  for (const SectionKey& key : kSectionKeys) {
    if (key.section == modern(section)) names.emplace_back(key.name);
  }
  return names;
}

std::string section_with(std::string_view name) {
  for (const SectionKey& key : kSectionKeys) {
    if (key.name == name && std::strcmp(key.name, "enabled")) return key.section;
  }
  return "";
}

}  // namespace dshang::doctor
