#include "monitor/unheard.h"

#include <dirent.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "core/job/model.h"
#include "monitor/disk.h"
#include "monitor/proc.h"

namespace dshang::monitor {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLibrary = "/libdshang.so";
constexpr const char* kFrameworks[] = {"/libtorch", "/libnccl", "/libcudart", "/libcuda.so",
                                       "/libsimcuda.so"};
// As job_id.h has them; a process of another job has other values.
constexpr const char* kOfJob[] = {"MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "SLURM_JOB_ID",
                                  "SLURM_STEP_ID"};
constexpr const char* kOfRank[] = {"RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"};

std::string text_in(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// "" where it is not set.
std::string variable(const std::string& environment, const std::string& name) {
  const std::string beginning = name + "=";
  for (std::size_t at = 0; at < environment.size();) {
    const char* line = environment.c_str() + at;
    if (std::strncmp(line, beginning.c_str(), beginning.size()) == 0) return line + beginning.size();
    at += std::strlen(line) + 1;
  }
  return "";
}

std::int32_t number(const std::string& text) {
  bool digits = !text.empty() && text.size() < 8 && text.find_first_not_of("0123456789") == std::string::npos;
  return digits ? std::atoi(text.c_str()) : -1;
}

std::map<std::string, std::string> own_variables() {
  std::map<std::string, std::string> own;
  for (const char* name : kOfJob) {
    if (const char* value = std::getenv(name)) own[name] = value;
  }
  return own;
}

std::vector<std::int32_t> all_processes() {
  std::vector<std::int32_t> pids;
  DIR* folder = opendir("/proc");
  if (!folder) return pids;
  while (const dirent* entry = readdir(folder)) {
    if (std::int32_t pid = number(entry->d_name); pid > 0) pids.push_back(pid);
  }
  closedir(folder);
  return pids;
}

std::string preload_text(const RankProcess& process) {
  return process.preload.empty() ? "no LD_PRELOAD" : "LD_PRELOAD=" + process.preload;
}

}  // namespace

std::int32_t rank_of_environment(const std::string& environment,
                                 const std::map<std::string, std::string>& own) {
  if (own.empty()) return -1;  // nothing tells this job from another
  for (const auto& [name, value] : own) {
    if (variable(environment, name) != value) return -1;
  }
  for (const char* name : kOfRank) {
    if (std::string value = variable(environment, name); !value.empty()) return number(value);
  }
  return -1;
}

RankProcess of_maps(const std::string& maps) {
  RankProcess process;
  process.library = maps.find(kLibrary) != std::string::npos;
  process.framework = std::any_of(std::begin(kFrameworks), std::end(kFrameworks),
                                  [&](const char* name) { return maps.find(name) != std::string::npos; });
  return process;
}

std::vector<RankProcess> processes_of(const Ranks& ranks) {
  const std::map<std::string, std::string> own = own_variables();
  std::vector<RankProcess> found;
  for (std::int32_t pid : all_processes()) {
    const std::string environment = text_in(process_path(pid) + "/environ");
    std::int32_t rank = rank_of_environment(environment, own);
    if (!ranks.contains(rank)) continue;
    const std::string maps = text_in(process_path(pid) + "/maps");
    if (maps.empty()) continue;  // it has ended, or does not let itself be looked at
    RankProcess process = of_maps(maps);
    process.pid = pid;
    process.rank = rank;
    process.preload = variable(environment, "LD_PRELOAD");
    found.push_back(process);
  }
  return found;
}

Ranks with_library(const std::vector<RankProcess>& processes) {
  Ranks ranks;
  for (const RankProcess& process : processes) {
    if (process.library) ranks.insert(process.rank);
  }
  return ranks;
}

std::map<std::int32_t, RankProcess> without_library(const std::vector<RankProcess>& processes) {
  const Ranks with = with_library(processes);
  std::map<std::int32_t, RankProcess> without;
  for (const RankProcess& process : processes) {
    if (process.framework && !with.contains(process.rank)) without.try_emplace(process.rank, process);
  }
  return without;
}

std::string text_of(const std::map<std::int32_t, RankProcess>& without) {
  Ranks ranks;
  for (const auto& [rank, process] : without) ranks.insert(rank);
  const RankProcess& first = without.begin()->second;
  return text_of_ranks(ranks) + " did not load libdshang.so (process " + std::to_string(first.pid) + ": " +
         preload_text(first) +
         "): nothing is known of it; `dshang run -- <launch command>` carries the preload to every rank";
}

std::string text_of_unheard(const Ranks& ranks, const std::string& directory) {
  return text_of_ranks(ranks) + (ranks.size() == 1 ? " was" : " were") +
         " not heard from: no process of this node, and no other node writes of it into " + directory +
         "; it did not load libdshang.so, or its node has another DSHANG_DIR";
}

std::string text_of_ranks(const Ranks& ranks) {
  return job::ranks_text(std::vector<std::int32_t>(ranks.begin(), ranks.end()));
}

Ranks ranks_of_other_nodes(const std::string& directory) {
  Ranks ranks;
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    const std::string node = at->path().string();
    if (!at->path().filename().string().starts_with("node-")) continue;
    std::istringstream words(
        text_in(node + "/attempt-" + std::to_string(newest_attempt(node)) + "/flight/ranks"));
    for (std::int32_t rank; words >> rank;) ranks.insert(rank);
  }
  return ranks;
}

}  // namespace dshang::monitor
