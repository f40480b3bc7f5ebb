#include "monitor/old_spools.h"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <system_error>

#include "monitor/server.h"

namespace dshang::monitor {
namespace {

namespace fs = std::filesystem;

constexpr int kMostRemoved = 16;
constexpr unsigned kMostLookedAt = 4096;
constexpr std::chrono::seconds kPatience{2};

// A directory and no link, of this user, closed to others.
bool is_private(const fs::path& path, std::uint32_t user) {
  struct stat info {};
  return lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == user &&
         (info.st_mode & 077) == 0;
}

// The number that the folder of a job is called by (settings.h).
std::optional<std::uint64_t> job_of(const std::string& name) {
  std::uint64_t job = 0;
  auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), job, 16);
  if (name.size() != 16 || error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return job;
}

// When anything in the folder was written last; absent where that cannot be told with bounded work.
std::optional<fs::file_time_type> last_written(const fs::path& folder) {
  std::error_code error;
  fs::file_time_type newest = fs::last_write_time(folder, error);
  unsigned seen = 0;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (++seen > kMostLookedAt || at->is_symlink(error)) return std::nullopt;
    newest = std::max(newest, at->last_write_time(error));
  }
  return error ? std::nullopt : std::optional(newest);
}

}  // namespace

int remove_old_spools(const std::string& user_directory, std::uint32_t user) {
  if (!is_private(user_directory, user)) return 0;
  const auto end = std::chrono::steady_clock::now() + kPatience;
  const auto old = fs::file_time_type::clock::now() - kSpoolIsOld;
  int removed = 0;
  unsigned seen = 0;
  std::error_code error;
  for (fs::directory_iterator at(user_directory, error), last; !error && at != last; at.increment(error)) {
    if (removed == kMostRemoved || ++seen > kMostLookedAt || std::chrono::steady_clock::now() > end) break;
    auto job = job_of(at->path().filename().string());
    if (!job || !is_private(at->path(), user)) continue;
    auto written = last_written(at->path());
    if (!written || *written > old || somebody_listens(user, *job)) continue;
    std::error_code kept;
    fs::remove_all(at->path(), kept);
    if (!kept) ++removed;
  }
  return removed;
}

}  // namespace dshang::monitor
