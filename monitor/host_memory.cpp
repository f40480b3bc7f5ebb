#include "monitor/host_memory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "monitor/clock.h"
#include "monitor/descriptor.h"

namespace dshang::monitor {
namespace {

// A process with hundreds of gibibytes takes seconds to go.
constexpr std::uint64_t kAround = 10 * kSecond;
constexpr int kKilled = 9;
// cgroup v1 writes a limit of "none" as the largest number of pages.
constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 60;

std::string read_text(const std::string& path) {
  Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  if (!file) return text;
  char part[4096];
  for (ssize_t n; text.size() < 65536 && (n = read(file.get(), part, sizeof part)) > 0;)
    text.append(part, static_cast<std::size_t>(n));
  return text;
}

bool is_there(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0;
}

// The folder of `group` below `mounted`, or that of the nearest parent that is visible here.
std::string visible(const std::string& mounted, std::string group, const char* file) {
  while (!group.empty() && group != "/") {
    if (is_there(mounted + group + "/" + file)) return mounted + group;
    group.resize(group.rfind('/'));
  }
  return is_there(mounted + "/" + file) ? mounted : "";
}

std::optional<std::uint64_t> number_in(const std::string& path) {
  std::string text = read_text(path);
  char* end = nullptr;
  std::uint64_t value = std::strtoull(text.c_str(), &end, 10);
  if (end == text.c_str()) return std::nullopt;  // "max"
  return value;
}

}  // namespace

std::string memory_group_of(const std::string& cgroup_text, const std::string& mounted) {
  std::istringstream lines(cgroup_text);
  std::string unified, own;
  bool has_own = false;
  for (std::string line; std::getline(lines, line);) {
    std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    if (controllers.find(",memory,") != controllers.npos) own = line.substr(second + 1), has_own = true;
    if (line.compare(0, 3, "0::") == 0) unified = line.substr(second + 1);
  }
  if (has_own) return visible(mounted + "/memory", own, "memory.oom_control");
  std::string folder = visible(mounted, unified, "memory.events");
  return folder.empty() ? visible(mounted + "/unified", unified, "memory.events") : folder;
}

std::optional<std::uint64_t> oom_kills_in(const std::string& text) {
  std::istringstream lines(text);
  std::string key;
  std::uint64_t value = 0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    if (words >> key >> value && key == "oom_kill") return value;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> read_resident(const std::string& path) {
  std::istringstream text(read_text(path + "/statm"));
  std::uint64_t size = 0, resident = 0;
  if (!(text >> size >> resident)) return std::nullopt;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

HostMemory::HostMemory(std::int32_t pid, const std::string& proc, const std::string& mounted) {
  if (pid <= 0) return;
  std::string folder = memory_group_of(read_text(proc + "/" + std::to_string(pid) + "/cgroup"), mounted);
  for (const char* name : {"/memory.events", "/memory.oom_control"}) {
    if (!folder.empty() && counter_.empty() && oom_kills_in(read_text(folder + name)))
      counter_ = folder + name;
  }
  if (counter_.empty()) counter_ = proc + "/vmstat";
  find_limit(proc, folder);
  look(now_ns());
}

void HostMemory::find_limit(const std::string& proc, const std::string& folder) {
  std::istringstream info(read_text(proc + "/meminfo"));
  std::string key;
  std::uint64_t kibibytes = 0;
  if (info >> key >> kibibytes && key == "MemTotal:") limit_ = kibibytes * 1024;
  if (folder.empty()) return;
  for (const char* name : {"/memory.max", "/memory.limit_in_bytes"}) {
    auto limit = number_in(folder + name);
    if (!limit || *limit >= kNoLimit || (limit_ && *limit >= limit_)) continue;
    limit_ = *limit;
    limit_is_of_group_ = true;
  }
}

std::optional<std::uint64_t> HostMemory::kills() const { return oom_kills_in(read_text(counter_)); }

void HostMemory::look(std::uint64_t now) {
  if (!seen_.empty() && elapsed(seen_.back().time_ns, now) < kSecond) return;
  auto count = kills();
  if (!count) return;
  seen_.push_back({now, *count});
  while (seen_.size() > 1 && elapsed(seen_[1].time_ns, now) >= kAround) seen_.erase(seen_.begin());
}

void HostMemory::explain(job::Death& death) const {
  bool killed = death.known == job::EndingKnown::kNo || (death.by_signal && death.code == kKilled);
  auto count = kills();
  if (!killed || !count || seen_.empty() || *count <= seen_.front().kills) return;
  death.oom_kills = *count - seen_.front().kills;
  death.memory_limit = limit_;
  death.limit_is_of_group = limit_is_of_group_;
}

}  // namespace dshang::monitor
