#include "issue/machine.h"

#include <gnu/libc-version.h>
#include <sys/utsname.h>

#include <fstream>
#include <future>

#include "doctor/command.h"
#include "doctor/measure.h"

namespace dshang::issue {
namespace {

constexpr double kReportPatience = 60;  // seconds: ds_report imports torch and DeepSpeed
constexpr double kPatience = 10;

// The versions of what training jobs are made of, and of everything of NVIDIA's.
constexpr const char* kPackages = R"(
import importlib.metadata as m, re, sys
print("python", sys.version.split()[0], sys.executable)
names = r"torch|deepspeed|transformers|accelerate|peft|trl|bitsandbytes|flash|xformers|triton|lightning|numpy|apex|" \
        r"datasets|tokenizers|safetensors|pydantic|hjson|ninja|mpi4py|megatron|nvidia|liger|vllm"
found = {(d.metadata["Name"] or "?", d.version) for d in m.distributions()}
for name, version in sorted(found, key=lambda one: one[0].lower()):
    if re.search(names, name, re.I):
        print(name, version)
)";

struct Told {
  std::string text, why_not;
};

Told ask(const std::vector<std::string>& words, double seconds) {
  if (words[0].empty() || doctor::on_path(words[0]).empty()) return {"", "it is not installed here"};
  int status = 0;
  std::string said = doctor::output_of(words, seconds, &status);
  if (status == 0) return {said, ""};
  std::string last = said.substr(0, said.find_last_not_of(" \n") + 1);
  last = last.substr(last.rfind('\n') + 1);
  std::string end = status < 0 ? "no answer within " + std::to_string(static_cast<int>(seconds)) + " s"
                               : "it ended with status " + std::to_string(status);
  return {said, end + (last.empty() ? "" : ": " + last)};
}

std::string distribution() {
  std::ifstream file("/etc/os-release");
  constexpr std::string_view kKey = "PRETTY_NAME=\"";
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(kKey)) return line.substr(kKey.size(), line.find('"', kKey.size()) - kKey.size());
  }
  return "";
}

std::string bytes_text(const std::optional<double>& bytes) {
  constexpr double kNoLimit = 1e17, kMebi = 1 << 20;
  if (!bytes) return "unknown";
  if (*bytes > kNoLimit) return "no limit";
  double mebi = *bytes / kMebi;
  return mebi < 1 ? std::to_string(static_cast<long>(*bytes / 1024)) + " KiB"
                  : std::to_string(static_cast<long>(mebi)) + " MiB";
}

std::string yes(const std::optional<bool>& value) { return !value ? "unknown" : *value ? "yes" : "no"; }

// uname(2), so that no program is needed.
std::string system_text(const doctor::Facts& facts) {
  const doctor::Machine& machine = facts.machine;
  std::string text;
  auto line = [&](const std::string& name, const std::string& value) {
    text += name + ": " + (value.empty() ? "unknown" : value) + "\n";
  };
  struct utsname system {};
  if (uname(&system) == 0)
    line("uname", std::string(system.sysname) + " " + system.nodename + " " + system.release + " " +
                      system.version + " " + system.machine);
  line("distribution", distribution());
  line("glibc", gnu_get_libc_version());
  std::string driver = doctor::first_line("/proc/driver/nvidia/version");
  line("NVIDIA driver", driver.empty() ? "none" : driver);
  line("nvcc", machine.nvcc);
  line("CUDA of torch", facts.torch_cuda);
  line("g++", machine.gxx);
  line("ninja", yes(machine.ninja));
  line("libaio.h", yes(machine.libaio));
  for (const doctor::Gpu& gpu : machine.gpu)
    line("GPU", gpu.name + ", compute capability " + gpu.compute_cap + ", " + bytes_text(gpu.memory_bytes));
  if (machine.gpu.empty()) line("GPU", "none is named by nvidia-smi");
  line("memory available", bytes_text(machine.memory_bytes));
  line("/dev/shm", bytes_text(machine.shm_bytes));
  line("locked memory, limit", bytes_text(machine.memlock_bytes));
  line("open files, limit", machine.open_files ? std::to_string(*machine.open_files) : "");
  std::string interfaces;
  for (const std::string& name : machine.interfaces.value_or(std::vector<std::string>()))
    interfaces += (interfaces.empty() ? "" : " ") + name;
  line("network interfaces", interfaces);
  line("InfiniBand active", yes(machine.infiniband));
  return text;
}

// Of packages without the interpreter's help: what the doctor saw in its folders.
std::string seen_packages(const doctor::Facts& facts) {
  std::string text;
  auto line = [&](const char* name, const std::string& version) {
    if (!version.empty()) text += std::string(name) + " " + version + "\n";
  };
  line("torch", facts.torch);
  line("deepspeed", facts.deepspeed);
  line("transformers", facts.transformers);
  return text;
}

void add(Material* material, Section section, const Told& told, const std::string& program) {
  if (!told.why_not.empty()) material->missing.push_back(program + ": " + told.why_not);
  section.text = told.text;
  if (!section.text.empty()) material->sections.push_back(std::move(section));
}

}  // namespace

void add_machine(const doctor::Facts& facts, Material* material) {
  const std::string python = doctor::python_of(facts);
  auto later = [](std::vector<std::string> words, double seconds) {
    return std::async(std::launch::async, ask, std::move(words), seconds);
  };
  std::vector<std::string> report = {python, "-m", "deepspeed.env_report"};
  if (python.empty()) report = {"ds_report"};
  auto ds_report = later(report, kReportPatience);
  auto packages = later({python, "-c", kPackages}, kPatience);
  auto smi = later({"nvidia-smi"}, kPatience);
  auto topology = later({"nvidia-smi", "topo", "-m"}, kPatience);

  Told versions = packages.get();
  if (versions.text.empty()) versions.text = seen_packages(facts);
  add(material, {"Versions", "", "packages.txt", "", "text", false}, versions,
      python.empty() ? "python" : python);
  material->sections.push_back({"System", "", "system.txt", system_text(facts), "text", false});
  add(material, {"nvidia-smi", "", "nvidia-smi.txt", "", "text", true}, smi.get(), "nvidia-smi");
  add(material, {"Topology (nvidia-smi topo -m)", "", "topology.txt", "", "text", true}, topology.get(),
      "nvidia-smi topo -m");
  add(material, {"ds_report", "", "ds_report.txt", "", "text", true}, ds_report.get(), "ds_report");
}

}  // namespace dshang::issue
