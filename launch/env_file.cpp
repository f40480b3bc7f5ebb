#include "launch/env_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "core/flight/hash.h"

namespace dshang::launch {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::hours kOld{7 * 24};

std::string trimmed(const std::string& text) {
  std::size_t from = text.find_first_not_of(" \t\r\n"), to = text.find_last_not_of(" \t\r\n");
  return from == std::string::npos ? "" : text.substr(from, to - from + 1);
}

bool read_one(const fs::path& path, std::vector<EnvLine>* lines, std::string* error) {
  std::ifstream file(path);
  if (!file) {
    *error = path.string() + " cannot be read";
    return false;
  }
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    std::size_t equals = line.find('=');
    if (equals == std::string::npos) {
      *error = path.string() + ":" + std::to_string(number) +
               " is no NAME=VALUE; DeepSpeed's runner ends at such a line, also at an empty one";
      return false;
    }
    lines->push_back({trimmed(line.substr(0, equals)), trimmed(line.substr(equals + 1))});
  }
  return true;
}

bool is_own_folder(const std::string& folder) {
  struct stat info {};
  return lstat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == getuid() &&
         (info.st_mode & 077) == 0;
}

bool is_env_file(const fs::path& path) {
  return path.filename().string().starts_with("launch-") && path.extension() == ".env";
}

void remove_old(const std::string& folder) {
  std::error_code error;
  const auto old = fs::file_time_type::clock::now() - kOld;
  std::vector<fs::path> found;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code unread;
    if (is_env_file(at->path()) && fs::last_write_time(at->path(), unread) < old && !unread)
      found.push_back(at->path());
  }
  for (const fs::path& path : found) fs::remove(path, error);
}

[[noreturn]] void fail(const std::string& path) {
  throw std::runtime_error(path + ": " + std::strerror(errno));
}

}  // namespace

std::optional<std::vector<EnvLine>> read_user_lines(const Place& place, std::string* error) {
  auto named = place.environment.find("DS_ENV_FILE");
  const std::string name = named == place.environment.end() ? ".deepspeed_env" : named->second;
  std::vector<EnvLine> lines;
  for (const std::string& folder : {place.home, place.folder}) {
    fs::path path = fs::path(folder) / name;  // a name that is absolute is the path itself
    std::error_code none;
    if (fs::is_regular_file(path, none) && !read_one(path, &lines, error)) return std::nullopt;
  }
  return lines;
}

std::string text_of(const std::vector<EnvLine>& lines) {
  std::string text;
  for (const EnvLine& line : lines) text += line.name + "=" + line.value + "\n";
  return text;
}

std::string for_pdsh(const std::string& value) {
  std::string text;
  for (char c : value) {
    if (std::strchr("\\\"$`", c)) text += '\\';
    text += c;
    if (c == '%') text += '%';
  }
  return text;
}

std::string write_env_file(const std::string& folder, const std::string& text) {
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) fail(folder);
  if (!is_own_folder(folder)) throw std::runtime_error(folder + " is not a folder of this user's alone");
  remove_old(folder);
  char name[40];
  std::snprintf(name, sizeof name, "/launch-%016llx.env",
                static_cast<unsigned long long>(flight::fnv1a(text.data(), text.size(), flight::kFnvOffset)));
  const std::string path = folder + name, fresh = path + "." + std::to_string(getpid());
  int file = open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) fail(fresh);
  bool written = write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (close(file) != 0 || !written || rename(fresh.c_str(), path.c_str()) != 0) {
    int error = errno;
    unlink(fresh.c_str());
    errno = error;
    fail(path);
  }
  return path;
}

}  // namespace dshang::launch
