// /proc, /sys, limits, compilers, GPUs.
#include <sys/resource.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "doctor/command.h"
#include "doctor/measure.h"

namespace dshang::doctor {
namespace {

namespace fs = std::filesystem;

std::string home_of(const Facts& facts) {
  const std::string* home = facts.env("HOME");
  return home ? *home : "";
}

// "MemAvailable:  24 kB" of /proc/meminfo; 0 where it is not.
double available_memory() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("MemAvailable:"))
      return std::atof(line.c_str() + std::strlen("MemAvailable:")) * 1024;
  }
  return 0;
}

// What the cgroup (v2, or v1's memory controller) leaves; negative: no limit.
double cgroup_memory() {
  for (auto [limit, used] : {std::pair("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
                             std::pair("/sys/fs/cgroup/memory/memory.limit_in_bytes",
                                       "/sys/fs/cgroup/memory/memory.usage_in_bytes")}) {
    std::string most = first_line(limit);
    if (most.empty() || most == "max" || most.size() > 17) continue;
    return std::max(0.0, std::atof(most.c_str()) - std::atof(first_line(used).c_str()));
  }
  return -1;
}

void measure_memory(Machine* machine) {
  double available = available_memory(), limited = cgroup_memory();
  if (available > 0) machine->memory_bytes = limited >= 0 ? std::min(available, limited) : available;
  struct statvfs shm {};
  if (statvfs("/dev/shm", &shm) == 0)
    machine->shm_bytes = static_cast<double>(shm.f_blocks) * static_cast<double>(shm.f_frsize);
  struct rlimit limit {};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0)
    machine->memlock_bytes = limit.rlim_cur == RLIM_INFINITY ? 1e18 : static_cast<double>(limit.rlim_cur);
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
    machine->open_files = static_cast<int>(std::min<rlim_t>(limit.rlim_cur, 1 << 30));
}

std::string matched(const std::string& text, const char* pattern) {
  std::smatch parts;
  return std::regex_search(text, parts, std::regex(pattern)) ? parts[1].str() : "";
}

void measure_compilers(const Facts& facts, Machine* machine) {
  const std::string* cuda = facts.env("CUDA_HOME");
  if (!cuda) cuda = facts.env("CUDA_PATH");
  std::string nvcc = cuda && !cuda->empty() ? *cuda + "/bin/nvcc" : on_path("nvcc");
  std::error_code error;
  if (nvcc.empty() && fs::exists("/usr/local/cuda/bin/nvcc", error)) nvcc = "/usr/local/cuda/bin/nvcc";
  bool there = !nvcc.empty() && fs::exists(nvcc, error);
  machine->nvcc = there ? matched(output_of({nvcc, "-V"}), "release ([0-9.]+)") : "none";
  const std::string* chosen = facts.env("CXX");
  std::string gxx = chosen && !chosen->empty() ? *chosen : on_path("g++");
  if (gxx.empty()) gxx = on_path("c++");
  bool gnu = gxx.find("clang") == std::string::npos;
  if (gxx.empty()) machine->gxx = "none";
  if (!gxx.empty() && gnu)
    machine->gxx = matched(output_of({gxx, "-dumpfullversion", "-dumpversion"}), "([0-9.]+)");
  machine->ninja = !on_path("ninja").empty();
}

bool any_exists(std::initializer_list<const char*> paths) {
  std::error_code error;
  return std::any_of(paths.begin(), paths.end(), [&](const char* path) { return fs::exists(path, error); });
}

// The header that async_io's build looks for; CFLAGS may name another place.
void measure_libaio(const Facts& facts, Machine* machine) {
  if (facts.env("CFLAGS") || facts.env("CPATH")) return;
  machine->libaio = any_exists({"/usr/include/libaio.h", "/usr/local/include/libaio.h"});
}

std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> result;
  std::istringstream stream(line);
  for (std::string cell; std::getline(stream, cell, ',');) {
    cell.erase(0, cell.find_first_not_of(' '));
    result.push_back(cell);
  }
  return result;
}

void measure_foreign(const std::map<std::string, std::size_t>& numbers, Machine* machine) {
  std::istringstream lines(
      output_of({"nvidia-smi", "--query-compute-apps=gpu_uuid,pid,used_memory,process_name",
                 "--format=csv,noheader,nounits"}));
  for (std::string line; std::getline(lines, line);) {
    auto cell = cells(line);
    auto number = cell.empty() ? numbers.end() : numbers.find(cell[0]);
    if (cell.size() < 4 || number == numbers.end()) continue;
    Gpu& gpu = machine->gpu[number->second];
    double bytes = std::atof(cell[2].c_str()) * (1 << 20);
    if (bytes > gpu.foreign_bytes.value_or(0))
      gpu.foreign_process = "process " + cell[1] + " (" + cell[3] + ")";
    gpu.foreign_bytes = gpu.foreign_bytes.value_or(0) + bytes;
  }
}

void measure_gpus(Machine* machine) {
  machine->driver = any_exists({"/proc/driver/nvidia/version"});
  if (on_path("nvidia-smi").empty()) return;
  std::map<std::string, std::size_t> numbers;
  std::istringstream lines(output_of(
      {"nvidia-smi", "--query-gpu=uuid,name,compute_cap,memory.total", "--format=csv,noheader,nounits"}));
  for (std::string line; std::getline(lines, line);) {
    auto cell = cells(line);
    if (cell.size() < 4 || !cell[0].starts_with("GPU-")) continue;
    numbers[cell[0]] = machine->gpu.size();
    machine->gpu.push_back({cell[1], cell[2], std::atof(cell[3].c_str()) * (1 << 20), std::nullopt, ""});
  }
  if (machine->gpu.empty()) return;
  machine->gpus = static_cast<int>(machine->gpu.size());
  measure_foreign(numbers, machine);
  if (machine->gpu.size() < 2) return;
  machine->nvlink = std::regex_search(output_of({"nvidia-smi", "topo", "-m"}), std::regex("\\bNV[0-9]+\\b"));
  std::error_code error;
  bool iommu = fs::exists("/sys/class/iommu", error) && !fs::is_empty("/sys/class/iommu", error);
  machine->iommu_passthrough = !iommu || first_line("/proc/cmdline").find("iommu=pt") != std::string::npos;
  std::string bridges = on_path("lspci").empty() ? "" : output_of({"lspci", "-vvv"});
  if (bridges.find("ACSCtl:") != std::string::npos)
    machine->acs_redirects = std::regex_search(bridges, std::regex("ACSCtl:[^\n]*(SrcValid\\+|ReqRedir\\+)"));
}

// Whether a compiler is at work; other users' processes count too.
bool compiler_runs() {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    std::string name = first_line(entry.path().string() + "/comm");
    if (name == "ninja" || name == "nvcc" || name == "cc1plus" || name == "cicc" || name == "ptxas")
      return true;
  }
  return false;
}

void measure_jit_locks(const Facts& facts, Machine* machine) {
  const std::string* chosen = facts.env("TORCH_EXTENSIONS_DIR");
  fs::path root = chosen && !chosen->empty() ? fs::path(*chosen)
                                             : fs::path(home_of(facts)) / ".cache" / "torch_extensions";
  std::error_code error;
  fs::recursive_directory_iterator all(root, fs::directory_options::skip_permission_denied, error), end;
  auto now = fs::file_time_type::clock::now();
  for (int seen = 0; !error && all != end && seen < 10000; all.increment(error), ++seen) {
    if (all.depth() > 2) all.disable_recursion_pending();
    if (all->path().filename() != "lock") continue;
    std::error_code of_file;
    double age = std::chrono::duration<double>(now - all->last_write_time(of_file)).count();
    if (!of_file) machine->jit_locks.push_back({all->path().string(), age, false});
  }
  if (machine->jit_locks.empty() || !compiler_runs()) return;
  for (JitLock& lock : machine->jit_locks) lock.building = true;
}

}  // namespace

void measure_machine(Facts* facts) {
  measure_memory(&facts->machine);
  measure_compilers(*facts, &facts->machine);
  measure_libaio(*facts, &facts->machine);
  measure_gpus(&facts->machine);
  measure_jit_locks(*facts, &facts->machine);
  if (!facts->machine.gpus) facts->not_checked.push_back("GPUs: nvidia-smi names none here");
}

}  // namespace dshang::doctor
