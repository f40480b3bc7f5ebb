// Everything that the rules look at: measured (measure.h), or told with --facts and --env-file
// (facts_file.h). What is not known is empty; a rule whose condition needs it stays silent.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "doctor/config.h"

namespace dshang::doctor {

// Who calls deepspeed.initialize: hf is Hugging Face's Trainer or Accelerate, which replace "auto".
enum class Trainer { kUnknown, kPlain, kHf };

// `dshang doctor -- deepspeed --num_gpus 4 train.py`, taken apart.
struct Launch {
  std::vector<std::string> words;
  std::string launcher;  // deepspeed, torchrun, accelerate, srun, mpirun, python; "" unknown
  std::string below;     // what srun or mpirun starts: torchrun, python, …; "" unknown
  std::map<std::string, std::string> options;  // of the launcher, names without dashes, _ for -
  std::string script, script_text;             // the first *.py, and what is in it
  std::string config;                          // of --deepspeed or --deepspeed_config, or accelerate's
  std::vector<std::string> unread{};           // files that are there: "train.py: Permission denied"
};

struct Hostfile {
  std::string path;
  std::vector<std::string> lines;
  int no_utf8 = 0;  // the first line that Python cannot decode, counted from 1
};

struct Gpu {
  std::string name, compute_cap;                      // "8.0"
  std::optional<double> memory_bytes, foreign_bytes;  // foreign: held by processes that run now
  std::string foreign_process;                        // its pid and name
};

struct JitLock {
  std::string path;
  double age_s = 0;
  bool building = false;  // a compiler is at work for it
};

struct PlaceOnDisk {
  std::string filesystem;  // ext4, tmpfs, nfs, overlay, ...
  std::optional<bool> writable, rotational;
  std::optional<double> free_bytes;
  std::string within;  // where the place does not exist: the nearest folder above it that does
};

struct Op {
  bool installed = false, compatible = true;  // the two columns of ds_report
};

struct Machine {
  std::optional<double> shm_bytes, memory_bytes,
      memlock_bytes;  // memory: available, within the cgroup's limit
  std::optional<int> open_files, gpus;
  std::vector<Gpu> gpu;
  std::optional<std::vector<std::string>> interfaces;
  std::optional<bool> infiniband, driver, nvlink, acs_redirects, iommu_passthrough, cuda_available;
  std::map<int, std::string> busy_ports;  // port -> who has it; "" unknown
  std::vector<JitLock> jit_locks;
  std::map<std::string, PlaceOnDisk> places;
  std::optional<bool> ninja, libaio;
  std::string nvcc, gxx, cuda_home;  // versions; "none": looked for and absent
  std::map<std::string, Op> ops;
  std::string ops_built_with;                          // torch's version of pre-built ops; "" none
  std::vector<std::string> torch_archs;                // sm_80, compute_90: what torch was built for
  std::optional<std::vector<std::string>> nvcc_archs;  // "7.5", "8.0": nvcc --list-gpu-arch
  std::optional<bool> master_is_loopback;              // MASTER_ADDR leads to 127.x
};

// Other nodes, looked at over ssh.
struct Node {
  std::string name, unreachable;             // unreachable: ssh's own words
  std::map<std::string, std::string> facts;  // versions, hash of the config, limits: docs/doctor.md
  std::optional<int> slots{};                // ranks that start there
};

struct Checkpoint {
  struct File {
    std::string path;  // below the directory
    double bytes = 0;
    bool empty_tensors = false;  // safetensors whose header has shapes [0]
  };
  std::string path;
  std::vector<File> files;
  std::optional<std::string> latest, latest_universal;
  bool latest_unread = false;  // the file is there, and what is in it is not known
  std::vector<std::string> closed{};  // folders below it that cannot be looked into
  std::vector<std::string> unread{};  // "PATH: why", of these and of files
  std::optional<double> free_bytes;
};

struct Model {
  std::string path;
  Json config;
  bool marked = false;  // a byte order mark stands before it
};

struct Facts {
  bool told = false;  // by --facts: nothing was measured
  std::optional<int> world_size, nodes, ranks_per_node, tp_size, stage, local_rank;
  std::optional<bool> load_universal, kernel_inject;
  std::optional<double> parameters;
  Trainer trainer = Trainer::kUnknown;
  Json hf;                                      // TrainingArguments, as far as known
  std::optional<std::string> client_optimizer;  // class given to initialize; "" none
  std::string checkpoint_optimizer;             // type in the checkpoint's own ds_config
  std::string deepspeed_refuses;                // what the installed DeepSpeed says against the config
  std::string ds_report_fails;                  // the last line of a ds_report that did not succeed
  std::string deepspeed, torch, torch_cuda, transformers;  // versions, "" unknown

  Launch launch;
  std::optional<Config> config;
  std::map<std::string, std::string> environment;
  std::vector<std::string> exported_names;  // in .deepspeed_env, which the launcher hands to every node
  std::optional<Hostfile> hostfile;
  Machine machine;
  std::vector<Node> other_nodes;
  std::optional<Checkpoint> checkpoint;
  std::optional<Model> model;
  std::vector<std::string> not_checked;

  // Ranks that share one model: all, divided by tensor and sequence parallelism.
  std::optional<int> data_parallel() const;
  const std::string* env(const std::string& name) const {
    auto found = environment.find(name);
    return found == environment.end() ? nullptr : &found->second;
  }
};

// "0.17.6" before "0.19.8"; an unknown version ("") is older than none.
bool older(const std::string& version, const std::string& than);

}  // namespace dshang::doctor
