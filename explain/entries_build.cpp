// Building and loading DeepSpeed's operators.
#include "explain/hits.h"

namespace dshang::explain {
namespace {

// Its warning stands in every log of a machine without the header; it counts where NVMe may be in use.
void async_io(const Entry& entry, const Observed& seen, Hits& hits) {
  const Sighting* sighting = seen.sighting(entry.id);
  if (sighting && (seen.config_has_nvme || (!seen.config_printed && !seen.trained()))) hits.add(*sighting);
}

void stale_lock(const Entry& entry, const Observed& seen, Hits& hits) {
  const Sighting* sighting = seen.sighting(entry.id);
  if (!sighting) return;
  for (const LogFile& file : seen.files) {
    bool last = file.last_line.find(" as PyTorch extensions root...") != std::string::npos;
    if (!last) continue;
    Sighting of_file = *sighting;
    of_file.first = file.last_place;
    of_file.text = file.last_line;
    return hits.add(of_file,
                    "the log ends where a rank waits for an operator that another process is said to build");
  }
}

}  // namespace

const Entries& build_entries() {
  static const Entries entries = {
      {"12.2-1",
       Severity::kWillFail,
       "nvcc does not know a GPU architecture it is asked for",
       {{R"(nvcc fatal\s*: Unsupported gpu architecture '(compute|sm)_\w+')"}},
       "CUDA 11-13",
       "the toolkit is too old for the card (10.0 and 12.0 need 12.8), or too new for the architecture "
       "(CUDA 13 begins at 7.5)",
       "`export TORCH_CUDA_ARCH_LIST=\"$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | sort -u "
       "| paste "
       "-sd';')\"`, or a fitting toolkit.",
       "nvcc",
       Role::kCause,
       {"X-13"}},
      {"12.2-2",
       Severity::kWillFail,
       "ds_report: FusedAdam can neither be loaded nor built",
       {{R"(fused_adam \.+ \[NO\] \.+ \[NO\])"}},
       "DeepSpeed 0.10-0.19.8; [NO] ... [OKAY] is normal",
       "nvcc, the right CUDA or g++ is missing",
       "Repair the toolkit; or `\"torch_adam\": true` in optimizer.params.",
       "ds_report"},
      {"12.2-3",
       Severity::kWillFail,
       "CPUAdam can neither be loaded nor built",
       {{R"(cpu_adam \.+ \[NO\] \.+ \[NO\])"},
        {R"(Unable to JIT load the cpu_adam op due to (it not being compatible|ninja not being installed))"}},
       "DeepSpeed 0.10-0.19.8; [NO] ... [OKAY] is normal",
       "compiler, ninja or Python's headers are missing",
       "`apt install g++ python3-dev`, `pip install ninja`.",
       "ds_report; op_builder/builder.py"},
      {"12.2-4",
       Severity::kWillFail,
       "libaio is missing: offload to NVMe will fail (without NVMe it does not matter)",
       {{R"(async_io requires the dev libaio \.so object and headers but these were not found)"},
        {R"(async_io: please install the libaio-dev package)"},
        {R"(async_io \.+ \[NO\] \.+ \[NO\])"}},
       "DeepSpeed 0.10-0.19.8",
       "the operator for asynchronous files needs its header",
       "`apt install libaio-dev` (RPM: libaio-devel); it is then built at run time.",
       "op_builder/async_io.py",
       Role::kCause,
       {},
       async_io},
      {"12.9-6",
       Severity::kWillFail,
       "DeepSpeed's operators were built for another torch, CUDA or HIP",
       {{R"((PyTorch|CUDA|HIP) version mismatch! DeepSpeed ops were compiled and installed)"}},
       "DeepSpeed 0.10-0.19.8",
       "the wheel with operators inside was made elsewhere, or torch was updated",
       "Reinstall DeepSpeed on every node alike: nothing pre-built, or one wheel.",
       "op_builder/builder.py"},
      {"X-03",
       Severity::kWillFail,
       "the destructor of CPUAdam: an error after the error",
       {{R"('DeepSpeedCPUAdam' object has no attribute 'ds_opt_adam')"}},
       "DeepSpeed <= 0.19.5",
       "CPUAdam could not be built or loaded; this line is only its destructor",
       "Look further up for the first error: compiler, CUDA versions, libstdc++.",
       "deepspeedai/DeepSpeed#1846, #4257, #5677",
       Role::kConsequence},
      {"X-11",
       Severity::kWillHang,
       "a rank waits for the lock of an operator's build",
       {{R"(Using \S+ as PyTorch extensions root\.\.\.)"}},
       "torch 1.x-2.14",
       "the lock of a killed build is never released (or another rank is still compiling)",
       "If nothing compiles any more: `rm ~/.cache/torch_extensions/*/*/lock`; on shared homes a "
       "TORCH_EXTENSIONS_DIR "
       "per node.",
       "huggingface/transformers#26015; pytorch/pytorch#189245",
       Role::kCause,
       {},
       stale_lock},
      {"X-12",
       Severity::kWillFail,
       "nvcc and torch have different CUDA versions, or there is no nvcc",
       {{R"(Op Builder: Installed CUDA version [\d.]+ does not match the version torch was compiled with)"},
        {R"(The detected CUDA version \([\d.]+\) mismatches the version that was used to compile)"},
        {R"(CUDA_HOME does not exist, unable to compile CUDA op)"},
        {R"(nvcc, unable to compile CUDA op)"},
        {R"(/bin/nvcc: not found)", R"(cpp_extension\.py)"},
        {R"(/bin/nvcc failed: No such file or directory)", R"(cpp_extension\.py)"}},
       "DeepSpeed 0.10-0.19.8",
       "another toolkit comes first on PATH, or CUDA_HOME names none",
       "`CUDA_HOME=/usr/local/cuda-<torch's>`; as a last resort DS_SKIP_CUDA_CHECK=1.",
       "deepspeedai/DeepSpeed#3436, #3706",
       Role::kCause,
       {"X-13", "E-25"}},
      {"X-13",
       Severity::kWillFail,
       "an operator does not compile",
       {{R"(Error building extension '(\w+)')"},
        {R"(#error You need C\+\+\d+ to compile PyTorch)"},
        {R"(unsupported GNU version! gcc versions later than \d+ are not supported)"},
        {R"(Command '\['ninja', '-v'\]' returned non-zero exit status)"}},
       "torch 2.x",
       "the compiler is too old for torch (C++17, C++20) or too new for nvcc",
       "Read the first `error:` above; install a fitting g++ and set CC and CXX.",
       "deepspeedai/DeepSpeed#6892, #6912, #4889",
       Role::kCause,
       {"E-25"}},
      {"E-25",
       Severity::kWillFail,
       "the file of an operator that should have been built is not there",
       {{R"(/\w+\.so: cannot open shared object file: No such file)", R"(cpp_extension\.py|op_builder)"},
        {R"(torch_extensions/\S+\.so: cannot open shared object file: No such file)"}},
       "torch 1.x-2.14",
       "its build failed, here or on another rank that shares the directory, or was removed while it was "
       "waited for",
       "Read the first error of the build further up, on all ranks. Then remove that operator's directory "
       "and "
       "start again; on shared homes a TORCH_EXTENSIONS_DIR per node.",
       "torch, utils/cpp_extension.py",
       Role::kConsequence},
      {"E-17",
       Severity::kWillFail,
       "ninja is missing: no operator can be built",
       {{R"(Ninja is required to load C\+\+ extensions)"}},
       "torch 1.x-2.14",
       "torch builds extensions with the program ninja, and finds none on PATH",
       "`pip install ninja` into the environment of the job, on every node; its bin directory must stand on "
       "PATH.",
       "torch, utils/cpp_extension.py",
       Role::kCause,
       {"12.2-3", "X-13"}},
      {"X-14",
       Severity::kWillFail,
       "libstdc++ of the process is older than the operator's",
       {{R"(libstdc\+\+\.so\.6: version .{0,3}GLIBCXX_3\.4\.\d+.{0,3} not found)"}},
       "any",
       "the operator was built by a newer g++ than the libstdc++ that is loaded (conda's)",
       "`conda install -c conda-forge libstdcxx-ng`, or build with conda's compiler; delete the cached "
       "operator.",
       "deepspeedai/DeepSpeed#4257, #2886, #7432"},
      {"X-32",
       Severity::kWillFail,
       "torch, or an operator, has no kernel for this GPU",
       {{R"(no kernel image is available for execution on the device)"},
        {R"(with CUDA capability sm_\d+ is not compatible with the current PyTorch installation)"}},
       "torch 1.x-2.14",
       "the build lacks the architecture",
       "A newer torch wheel; build the operator again with the "
       "card's TORCH_CUDA_ARCH_LIST.",
       "torch"},
      {"E-26",
       Severity::kWillFail,
       "the NVIDIA driver is too old for this torch",
       {{R"(The NVIDIA driver on your system is too old \(found version \d+\))"}},
       "torch 1.x-2.14",
       "torch was built for a newer CUDA than the driver supports (11040 is CUDA 11.4)",
       "Update the driver, or install the torch of an older CUDA (`nvidia-smi` shows the newest that the "
       "driver "
       "supports).",
       "torch.cuda"},
      {"E-27",
       Severity::kWillFail,
       "the process sees no GPU",
       {{R"(No CUDA GPUs are available)"}},
       "torch 1.x-2.14",
       "CUDA_VISIBLE_DEVICES is empty or names GPUs that do not exist, or the container or the actor was "
       "given "
       "none",
       "`nvidia-smi -L` and `echo $CUDA_VISIBLE_DEVICES` where the process runs; `--gpus all`; num_gpus of "
       "Ray's "
       "actor; --gres of Slurm.",
       "torch.cuda"},
      {"X-43",
       Severity::kSlow,
       "the job runs on the CPU",
       {{R"(Setting accelerator to CPU\. If you have GPU or other accelerator, we were unable to detect it)"},
        {R"(Found no NVIDIA driver on your system)"},
        {R"(Unable to proceed, no GPU resources available)"}},
       "DeepSpeed >= 0.14",
       "no driver in the container, a torch without CUDA, or CUDA_VISIBLE_DEVICES empty",
       "`--gpus all`, the right wheel; DS_ACCELERATOR=cpu where it is meant.",
       "accelerator/real_accelerator.py"},
  };
  return entries;
}

}  // namespace dshang::explain
