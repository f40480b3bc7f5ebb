// DeepSpeed's ops: compilers, CUDA, what was built for what.
#include <cmath>
#include <map>
#include <sstream>

#include "doctor/nodes.h"
#include "doctor/rule.h"

namespace dshang::doctor {
namespace {

constexpr const char* kArchList = "TORCH_CUDA_ARCH_LIST";
constexpr double kStale = 600;  // seconds: a lock that old is nobody's, unless something builds

double version_number(const std::string& text) { return std::atof(text.c_str()); }
int main_number(const std::string& version) { return std::atoi(version.c_str()); }
bool known(const std::string& version) { return !version.empty() && version != "none"; }

// The first and last toolkit for an architecture, as nvcc's release notes list them.
struct Support {
  double arch;
  const char *first, *last;
};
constexpr Support kSupport[] = {{3.5, "5.0", "11.8"}, {3.7, "6.5", "11.8"}, {5.0, "6.5", "12.9"},
                                {5.2, "6.5", "12.9"}, {6.0, "8.0", "12.9"}, {6.1, "8.0", "12.9"},
                                {7.0, "9.0", "12.9"}, {7.2, "9.2", "12.9"}, {7.5, "10.0", ""},
                                {8.0, "11.0", ""},    {8.6, "11.1", ""},    {8.7, "11.4", ""},
                                {8.9, "11.8", ""},    {9.0, "11.8", ""},    {10.0, "12.8", ""},
                                {10.3, "12.9", ""},   {12.0, "12.8", ""},   {12.1, "12.9", ""}};

// Why nvcc refuses it; "" it does not, or that is not known.
std::string refused_arch(const Machine& machine, const std::string& arch) {
  if (machine.nvcc_archs) {
    for (const std::string& one : *machine.nvcc_archs) {
      if (one == arch) return "";
    }
    return "nvcc does not know it";
  }
  for (const Support& support : kSupport) {
    if (std::fabs(support.arch - version_number(arch)) > 0.01) continue;
    if (older(machine.nvcc, support.first))
      return "it needs CUDA " + std::string(support.first) + " or newer";
    if (*support.last && older(support.last, machine.nvcc) &&
        main_number(machine.nvcc) > main_number(support.last))
      return "CUDA " + std::string(support.last) + " was the last that had it";
  }
  return "";
}

std::vector<std::string> archs_of(std::string list) {
  for (char& c : list) c = c == ';' || c == ',' ? ' ' : c;
  std::istringstream words(list);
  std::vector<std::string> archs;
  for (std::string word; words >> word;) {
    std::size_t end = word.find_first_not_of("0123456789.");
    if (end == 0) continue;  // "Ampere": torch knows the names
    archs.push_back(word.substr(0, end));
  }
  return archs;
}

void arch_list(const Facts& facts, Hits& hits) {
  if (!known(facts.machine.nvcc)) return;
  std::string with = " with CUDA " + facts.machine.nvcc;
  if (const std::string* list = facts.env(kArchList)) {
    for (const std::string& arch : archs_of(*list)) {
      std::string why = refused_arch(facts.machine, arch);
      if (!why.empty()) hits.add(kArchList, std::string(kArchList) + " asks for " + arch + with + ": " + why);
    }
    return;
  }
  for (const Gpu& gpu : facts.machine.gpu) {
    std::string why = gpu.compute_cap.empty() ? "" : refused_arch(facts.machine, gpu.compute_cap);
    if (!why.empty())
      return hits.add("nvcc", "the GPU has compute capability " + gpu.compute_cap + with + ": " + why,
                      "Install a toolkit that knows the GPU, and set CUDA_HOME to it.");
  }
}

bool adam_on_gpu(const Facts& facts) {
  if (!facts.config || !facts.config->readable()) return false;
  std::string type = facts.config->optimizer();
  bool offloaded = facts.config->device("offload_optimizer") != "none" && facts.config->stage() > 0;
  return (type == "adam" || type == "adamw") && !facts.config->on("optimizer.params.torch_adam") &&
         !offloaded;
}

bool adam_on_cpu(const Facts& facts) {
  if (!facts.config || !facts.config->readable() || facts.config->stage() == 0) return false;
  std::string type = facts.config->optimizer();
  bool adam = type == "adam" || type == "adamw" || (type.empty() && facts.trainer == Trainer::kHf);
  return adam && facts.config->device("offload_optimizer") != "none" &&
         !facts.config->on("optimizer.params.torch_adam");
}

bool uses_nvme(const Facts& facts) {
  if (!facts.config || !facts.config->readable() || facts.config->stage() != 3) return false;
  return facts.config->device("offload_optimizer") == "nvme" ||
         facts.config->device("offload_param") == "nvme";
}

const Op* op(const Facts& facts, const char* name) {
  auto found = facts.machine.ops.find(name);
  return found == facts.machine.ops.end() ? nullptr : &found->second;
}

bool installed(const Facts& facts, const char* name) { return op(facts, name) && op(facts, name)->installed; }
bool unusable(const Facts& facts, const char* name) {
  return op(facts, name) && !op(facts, name)->installed && !op(facts, name)->compatible;
}

// What is missing to build an op now.
std::string missing_tools(const Facts& facts, bool cuda) {
  std::string text;
  auto add = [&](const char* what) { text += (text.empty() ? "" : ", ") + std::string(what); };
  if (facts.machine.gxx == "none") add("g++");
  if (facts.machine.ninja == false) add("ninja");
  if (cuda && facts.machine.nvcc == "none") add("nvcc");
  return text;
}

void needs_op(const Facts& facts, const char* name, bool cuda, const std::string& because, Hits& hits) {
  if (installed(facts, name)) return;
  std::string missing = missing_tools(facts, cuda);
  if (unusable(facts, name))
    hits.add(name,
             std::string(name) + " is neither built nor can be built (ds_report: [NO] … [NO]); " + because);
  else if (!missing.empty())
    hits.add(name, std::string(name) + " is not built, and building it at the start needs " + missing + "; " +
                       because);
}

void fused_adam(const Facts& facts, Hits& hits) {
  bool gpu = facts.machine.gpus.value_or(0) > 0 || unusable(facts, "fused_adam");
  if (gpu && adam_on_gpu(facts))
    needs_op(facts, "fused_adam", true, "the config's Adam on the GPU is FusedAdam", hits);
}

void cpu_adam(const Facts& facts, Hits& hits) {
  if (adam_on_cpu(facts)) needs_op(facts, "cpu_adam", false, "the offloaded optimizer needs it", hits);
}

void async_io(const Facts& facts, Hits& hits) {
  if (!uses_nvme(facts) || installed(facts, "async_io")) return;
  if (unusable(facts, "async_io") || facts.machine.libaio == false)
    hits.add("async_io", "NVMe offload needs the op async_io, and libaio's header or library is missing");
}

bool builds_cuda_op(const Facts& facts) { return adam_on_gpu(facts) && !installed(facts, "fused_adam"); }

void toolkit(const Facts& facts, Hits& hits) {
  const std::string& nvcc = facts.machine.nvcc;
  const std::string* skip = facts.env("DS_SKIP_CUDA_CHECK");
  if (!known(nvcc) || facts.torch_cuda.empty() || (skip && *skip == "1")) return;
  bool same_major = main_number(nvcc) == main_number(facts.torch_cuda);
  bool listed =
      same_major && main_number(nvcc) >= 10 && main_number(nvcc) <= 12;  // op_builder/builder.py, up to 12.9
  bool equal = version_number(nvcc) == version_number(facts.torch_cuda);
  if (equal || listed) return;
  hits.add("nvcc",
           "nvcc is of CUDA " + nvcc + ", torch was built with " + facts.torch_cuda + ": no op can be built",
           "", builds_cuda_op(facts) ? std::nullopt : std::optional(Severity::kRisk));
}

// CUDA's installation guides: the newest g++ that nvcc takes.
int newest_gxx(double cuda) {
  if (cuda >= 13) return 15;
  if (cuda >= 12.8) return 14;
  if (cuda >= 12.4) return 13;
  if (cuda >= 12) return 12;
  return cuda >= 11.5 ? 11 : 10;
}

void compiler(const Facts& facts, Hits& hits) {
  if (!known(facts.machine.gxx)) return;
  int gxx = main_number(facts.machine.gxx);
  if (known(facts.machine.nvcc) && gxx > newest_gxx(version_number(facts.machine.nvcc))) {
    hits.add("g++",
             "g++ " + facts.machine.gxx + " is too new for nvcc of CUDA " + facts.machine.nvcc +
                 ", which takes up to " + std::to_string(newest_gxx(version_number(facts.machine.nvcc))),
             "", builds_cuda_op(facts) ? std::nullopt : std::optional(Severity::kRisk));
  }
  bool newest = !facts.torch.empty() && !older(facts.torch, "2.14.0");
  int least = newest ? 10 : 9;
  if (gxx < least && adam_on_cpu(facts) && !installed(facts, "cpu_adam"))
    hits.add("g++", "g++ " + facts.machine.gxx + " is too old for torch " + facts.torch + ", which needs " +
                        std::to_string(least));
}

// Ops of which configuration or machine tell that this job does not load them; without an optimizer block
// the script chooses.
bool never_loaded(const Facts& facts, const std::string& op) {
  const std::string* accelerator = facts.env("DS_ACCELERATOR");
  if (op == "deepspeed_shm_comm") return facts.machine.cuda_available == true && !accelerator;
  bool chosen = facts.config && facts.config->readable() && !facts.config->optimizer().empty();
  if (op == "fused_adam") return chosen && !adam_on_gpu(facts);
  return op == "cpu_adam" && chosen && !adam_on_cpu(facts);
}

void stale_lock(const Facts& facts, Hits& hits) {
  for (const JitLock& lock : facts.machine.jit_locks) {
    if (lock.building || lock.age_s < kStale) continue;
    std::string folder = lock.path.substr(0, lock.path.rfind('/'));
    if (never_loaded(facts, folder.substr(folder.rfind('/') + 1))) continue;
    hits.add(lock.path,
             "the lock " + lock.path + " is " + number_text(std::floor(lock.age_s / 60)) +
                 " minutes old and nothing builds: "
                 "every job that loads the op waits for it",
             "rm " + lock.path);
  }
}

void built_with(const Facts& facts, Hits& hits) {
  const std::string& built = facts.machine.ops_built_with;
  if (built.empty() || built == "0.0" || facts.torch.empty()) return;
  auto release = [](const std::string& version) {
    return version.substr(0, version.find('.', version.find('.') + 1));
  };
  if (release(built) != release(facts.torch))
    hits.add("deepspeed", "DeepSpeed's ops were built with torch " + built + ", installed is " + facts.torch);
}

// Ops that were built with DeepSpeed on some nodes: those of the others are built when they are first needed.
void built_unlike(const Facts& facts, Hits& hits) {
  std::map<std::string, std::vector<std::string>> nodes;
  for (const Node& node : facts.other_nodes) {
    auto ops = node.facts.find("ops");
    if (node.unreachable.empty() && ops != node.facts.end()) nodes[ops->second].push_back(node.name);
  }
  if (nodes.size() < 2) return;
  std::string said;
  for (const auto& [ops, names] : nodes)
    said +=
        (said.empty() ? "" : "; ") + std::string(ops == kNone ? "none" : ops) + " on " + node_names(names);
  hits.add("deepspeed", "DeepSpeed was installed with other ops built on some nodes: " + said, "",
           Severity::kRisk);
}

void pre_built(const Facts& facts, Hits& hits) {
  built_with(facts, hits);
  built_unlike(facts, hits);
}

void no_kernel(const Facts& facts, Hits& hits) {
  if (facts.machine.torch_archs.empty()) return;
  for (const Gpu& gpu : facts.machine.gpu) {
    if (gpu.compute_cap.empty()) continue;
    double card = version_number(gpu.compute_cap);
    bool runs = false;
    for (const std::string& arch : facts.machine.torch_archs) {
      double built = std::atof(arch.substr(arch.find('_') + 1).c_str()) / 10;
      bool ptx = arch.starts_with("compute_");
      if (ptx ? built <= card + 0.01 : std::floor(built) == std::floor(card) && built <= card + 0.01)
        runs = true;
    }
    if (!runs)
      return hits.add(gpu.name.empty() ? "GPU" : gpu.name,
                      "torch has no kernels for compute capability " + gpu.compute_cap);
  }
}

void report_fails(const Facts& facts, Hits& hits) {
  if (!facts.ds_report_fails.empty())
    hits.add("ds_report",
             "DeepSpeed " + facts.deepspeed + " is installed, and ds_report fails: " + facts.ds_report_fails);
}

void on_cpu(const Facts& facts, Hits& hits) {
  if (facts.machine.driver != true) return;
  const std::string* chosen = facts.env("DS_ACCELERATOR");
  if (chosen && *chosen == "cpu") return;
  const std::string* visible = facts.env("CUDA_VISIBLE_DEVICES");
  bool wheel = facts.torch.find("+cpu") != std::string::npos;
  if (visible && (visible->empty() || *visible == "-1"))
    hits.add("CUDA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES is empty: DeepSpeed falls back to the CPU");
  else if (wheel)
    hits.add("torch", "torch " + facts.torch + " is built for the CPU, and this machine has a GPU");
  else if (facts.machine.cuda_available == false)
    hits.add("torch", "torch does not see the GPU of this machine: DeepSpeed falls back to the CPU");
}

}  // namespace

const Rules& build_rules() {
  static const Rules rules = {
      {"12.1-1", Area::kMachine, Severity::kWillFail, "ds_report of the installed DeepSpeed (--validate)",
       "it fails", "DeepSpeed, or torch below it, cannot be imported: the job cannot either",
       "Run ds_report and read its first error: a package that is missing, or built for another torch.",
       "python -m deepspeed.env_report", report_fails},
      {"12.2-1", Area::kEnv, Severity::kWillFail, "TORCH_CUDA_ARCH_LIST, the GPU, nvcc",
       "nvcc does not know the architecture", "the toolkit is too old for the card or too new for the list",
       "export TORCH_CUDA_ARCH_LIST=\"$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | sort -u | "
       "paste -sd';')\"",
       "nvcc fatal : Unsupported gpu architecture", arch_list},
      {"12.2-2", Area::kMachine, Severity::kWillFail,
       "the op fused_adam, nvcc, g++, ninja, the config's optimizer",
       "it is needed, not built, and cannot be built ([NO] … [OKAY] in ds_report is normal)",
       "a tool for building is missing",
       "Install what is missing, or set \"torch_adam\": true in optimizer.params.",
       "fused_adam … [NO] … [NO]", fused_adam},
      {"12.2-3", Area::kMachine, Severity::kWillFail, "the op cpu_adam, g++, ninja, the config's offload",
       "it is needed, not built, and cannot be built", "a tool for building is missing",
       "apt install g++ python3-dev; pip install ninja; or pre-build: DS_BUILD_CPU_ADAM=1 pip install "
       "--no-build-isolation "
       "--force-reinstall --no-deps deepspeed",
       "Unable to JIT load the cpu_adam op", cpu_adam},
      {"12.2-4", Area::kMachine, Severity::kWillFail, "the op async_io, libaio, NVMe in the config",
       "NVMe is used and libaio is missing", "the op is built at the start and needs the header",
       "apt install libaio-dev (RPM: libaio-devel).",
       "async_io requires the dev libaio .so object and headers but these were not found", async_io},
      {"X-12", Area::kMachine, Severity::kWillFail, "nvcc's and torch's CUDA versions",
       "another major version (from 13 on also another minor one)", "another toolkit is first on PATH",
       "Set CUDA_HOME to the toolkit of torch's version; as a last resort DS_SKIP_CUDA_CHECK=1.",
       "Installed CUDA version … does not match the version torch was compiled with; "
       "deepspeedai/DeepSpeed#3436",
       toolkit},
      {"X-13", Area::kMachine, Severity::kWillFail, "g++, nvcc, torch",
       "g++ is too new for nvcc or too old for torch", "the op does not compile",
       "Install a g++ that fits and set CC and CXX to it.",
       "unsupported GNU version! gcc versions later than …; deepspeedai/DeepSpeed#4889", compiler},
      {"X-11", Area::kMachine, Severity::kWillHang, "lock files of torch's extensions, running compilers",
       "a lock is older than 10 minutes, nothing builds, and the job may load the op",
       "a build was killed and its lock stayed", "Remove the lock.",
       "Using … as PyTorch extensions root... (last line of the log); pytorch/pytorch#189245", stale_lock},
      {"12.9-6", Area::kMachine, Severity::kWillFail,
       "torch that DeepSpeed's ops were built with, installed torch; ops built on each node (--ssh)",
       "they differ", "pre-built ops belong to one torch; where one is missing it is built at the start",
       "Install the same wheel on every node, or pre-build nothing.",
       "PyTorch version mismatch! DeepSpeed ops were compiled and installed", pre_built},
      {"X-32", Area::kMachine, Severity::kWillFail, "compute capability, torch's list of architectures",
       "no kernel and no PTX fits", "the wheel lacks the architecture",
       "Install a torch wheel for a newer CUDA.", "no kernel image is available for execution on the device",
       no_kernel},
      {"X-43", Area::kMachine, Severity::kSlow, "CUDA_VISIBLE_DEVICES, torch's wheel, the driver",
       "a driver is there and torch cannot use it, DS_ACCELERATOR is not cpu",
       "DeepSpeed then takes the CPU without an error",
       "Install a CUDA wheel of torch; start the container with --gpus all; unset CUDA_VISIBLE_DEVICES.",
       "Setting accelerator to CPU. If you have GPU or other accelerator, we were unable to detect it",
       on_cpu},
  };
  return rules;
}

}  // namespace dshang::doctor
