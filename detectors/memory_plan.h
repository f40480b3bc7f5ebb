// What a model and its training need of a device, as far as follows from sizes and settings that the probe
// noted, and what would change it.  Estimates: mixed precision with Adam takes 2 + 2 + 12 bytes a parameter
// (weights, gradients, optimizer with fp32 weights), fp32 with Adam 4 + 4 + 8 (ZeRO, arXiv:1910.02054,
// section 3); ZeRO shards them over the data-parallel ranks by stage.  Other optimizers need less.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "detectors/registry.h"

namespace dshang::detect {

struct MemorySettings {
  std::uint64_t parameters = 0, trained = 0, bytes = 0;  // of the whole model; 0 = not known
  std::uint64_t ranks = 1;                               // that share the data
  int stage = -1;                                        // of ZeRO; -1 = no DeepSpeed
  bool half = false;                                     // bf16 or fp16
  std::string offload_optimizer, offload_param;          // "cpu", "nvme", ""
  std::string max_in_cpu, disk;                          // of offload_param; of whichever goes to NVMe
  std::uint64_t micro_batch = 0;                         // 0 = not known
  bool gather_16bit = false, checkpointing_block = false;
  bool recomputes = false;  // a forward pass was seen again in backward
  bool offloads_to_nvme() const { return offload_param == "nvme" || offload_optimizer == "nvme"; }
};

MemorySettings memory_settings(const JobView& view, const job::RankView& rank);

// "offload goes to sda (rotating), which is no NVMe drive: slow; max_in_cpu 1e9 parameters"; "" where none
// goes to NVMe.
std::string nvme_text(const MemorySettings& settings);

// Bytes on this rank's device.
struct ModelParts {
  std::uint64_t weights = 0, gradients = 0, optimizer = 0;
  std::uint64_t all() const { return weights + gradients + optimizer; }
};
ModelParts parts_of(const MemorySettings& settings);

// "weights 14 GiB, gradients 14 GiB, optimizer 10.5 GiB"
std::string parts_text(const ModelParts& parts);

struct Need {
  std::uint64_t total = 0;        // of the device
  std::uint64_t other = 0;        // that nobody accounts for
  std::uint64_t activations = 0;  // what is left of what was in use and asked for
};

// What would make it fit, those that do first, then what costs least, each with numbers: "ZeRO stage 3 (…):
// about 12 GiB less; fits: 61 of 80 GiB".
std::vector<std::string> ways_to_fit(const MemorySettings& settings, const Need& need);

}  // namespace dshang::detect
