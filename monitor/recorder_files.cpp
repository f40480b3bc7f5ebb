#include "monitor/recorder_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <stdexcept>
#include <system_error>

#include "core/job/recorder_export.h"
#include "core/job/recorder_import.h"
#include "monitor/disk.h"

namespace dshang::monitor {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBytesLookedAt = 64;

// "_dump_12", "rank_12.json": 12.
std::optional<job::Rank> rank_of(const fs::path& path) {
  std::string name = path.filename().string();
  for (const char* ending : {".json", ".pickle", ".pkl"}) {
    if (name.ends_with(ending)) name.resize(name.size() - std::string_view(ending).size());
  }
  std::size_t digits = name.size();
  while (digits > 0 && std::isdigit(static_cast<unsigned char>(name[digits - 1]))) --digits;
  job::Rank rank = -1;
  auto [end, error] = std::from_chars(name.data() + digits, name.data() + name.size(), rank);
  if (digits == name.size() || error != std::errc()) return std::nullopt;
  return rank;
}

bool may_be_dump(const fs::path& path) {
  std::error_code error;
  if (!rank_of(path) || !fs::is_regular_file(path, error)) return false;
  char begin[kBytesLookedAt];
  std::ifstream file(path, std::ios::binary);
  file.read(begin, sizeof begin);
  return job::looks_like_recorder_dump({begin, static_cast<std::size_t>(file.gcount())});
}

std::vector<fs::path> dumps_in(const std::string& directory) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    if (may_be_dump(entry.path())) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::uint64_t written_ns(const fs::path& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0 || info.st_mtim.tv_sec < 0) return 0;
  return static_cast<std::uint64_t>(info.st_mtim.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(info.st_mtim.tv_nsec);
}

}  // namespace

bool holds_recorder_dumps(const std::string& directory) {
  std::error_code error;
  if (fs::is_directory(fs::path(directory) / "flight", error)) return false;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    if (entry.path().extension() == ".flight") return false;
  }
  return !dumps_in(directory).empty();
}

Replay replay_recorder_dumps(const std::vector<std::string>& directories) {
  job::RecorderImport import;
  Replay result{nullptr, {}, 0, {}};
  std::map<job::Rank, fs::path> seen;
  std::uint64_t newest_file_ns = 0;
  std::size_t read = 0;
  for (const std::string& directory : directories) {
    for (const fs::path& path : dumps_in(directory)) {
      job::Rank rank = *rank_of(path);
      auto [first, is_new] = seen.emplace(rank, path);
      if (!is_new) {
        throw std::runtime_error("two dumps of rank " + std::to_string(rank) + ": " + first->second.string() +
                                 " and " + path.string());
      }
      try {
        std::string bytes = read_file(path.string());
        import.add(rank, job::read_recorder_dump(bytes));
        newest_file_ns = std::max(newest_file_ns, written_ns(path));
        ++read;
      } catch (const std::exception& error) {
        result.remarks.push_back(path.string() + ": not heard from, it cannot be read: " + error.what());
      }
    }
  }
  if (read == 0) {
    std::string why = result.remarks.empty() ? "" : ": " + result.remarks[0];
    throw std::runtime_error("no Flight Recorder dump could be read" + why);
  }
  result.job = import.finish(newest_file_ns, &result.remarks);
  result.job->journal.dir = directories[0];
  result.moments = {result.job->journal.now_ns};
  return result;
}

std::vector<std::string> write_recorder_dumps(const job::Job& job, const std::string& directory) {
  make_directories(directory);
  std::error_code error;
  if (!fs::is_empty(directory, error)) {
    throw std::runtime_error(directory +
                             " is not empty: an analyser takes every file there for a dump of the job");
  }
  job::JobView view = job::make_view(job);
  job::RecorderExport dumps(view);
  const job::Journal& journal = job.journal;
  std::uint64_t now_ns = journal.now_ns - journal.start_ns + journal.start_real_ns;
  timespec then{static_cast<time_t>(now_ns / 1'000'000'000), static_cast<long>(now_ns % 1'000'000'000)};
  timespec both[] = {then, then};
  for (const job::RankView& rank : view.ranks) {
    std::string path = directory + "/_dump_" + std::to_string(rank.rank);
    replace_file(path, dumps.dump_of(rank));
    utimensat(AT_FDCWD, path.c_str(), both, 0);  // where it fails, the file is of now
  }
  return dumps.remarks();
}

}  // namespace dshang::monitor
