#include "monitor/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "monitor/descriptor.h"

namespace dshang::monitor {
namespace {

constexpr mode_t kPrivateDirectory = 0700;
constexpr mode_t kPrivateFile = 0600;
constexpr std::string_view kAttempt = "attempt-";

void write_all(const Descriptor& file, const std::string& path, const std::string& content) {
  std::size_t at = 0;
  while (at < content.size()) {
    ssize_t n = write(file.get(), content.data() + at, content.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw DiskError(path, errno);
    at += static_cast<std::size_t>(n);
  }
}

Descriptor open_for_writing(const std::string& path, int flags) {
  Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, kPrivateFile));
  if (!file) throw DiskError(path, errno);
  return file;
}

// Several monitors may write the same directory: other nodes, the last seconds of an earlier attempt.
std::string name_beside(const std::string& path) {
  char host[64] = "";
  gethostname(host, sizeof host - 1);
  return path + "." + host + "." + std::to_string(getpid()) + ".new";
}

void rename_or_remove(const std::string& from, const std::string& to) {
  if (rename(from.c_str(), to.c_str()) == 0) return;
  int error = errno;
  unlink(from.c_str());
  throw DiskError(to, error);
}

// The number of "attempt-<n>" or "attempt-<n>/...", 0 = another name.
int attempt_number(std::string_view name) {
  if (name.substr(0, kAttempt.size()) != kAttempt) return 0;
  name.remove_prefix(kAttempt.size());
  name = name.substr(0, name.find('/'));
  int number = 0;
  auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  return error == std::errc() && end == name.data() + name.size() && number > 0 ? number : 0;
}

}  // namespace

DiskError::DiskError(const std::string& path, int error)
    : std::runtime_error("cannot write " + path + ": " + std::strerror(error)) {}

bool make_directory(const std::string& path) {
  if (mkdir(path.c_str(), kPrivateDirectory) == 0) return true;
  if (errno != EEXIST) throw DiskError(path, errno);
  return false;
}

void make_directories(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return;
  std::string parent = std::filesystem::path(path).parent_path();
  if (!parent.empty() && parent != path) make_directories(parent);
  if (!make_directory(path) && !std::filesystem::is_directory(path, error)) throw DiskError(path, ENOTDIR);
}

void make_private_directory(const std::string& path) {
  make_directory(path);
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) throw DiskError(path, errno);
  if (!S_ISDIR(info.st_mode)) throw DiskError(path, ENOTDIR);
  if (info.st_uid != geteuid() || (info.st_mode & 077)) throw DiskError(path, EPERM);
}

void replace_file(const std::string& path, const std::string& content) {
  std::string temporary = name_beside(path);
  try {
    write_all(open_for_writing(temporary, O_TRUNC), temporary, content);
  } catch (...) {
    unlink(temporary.c_str());
    throw;
  }
  rename_or_remove(temporary, path);
}

void append_to_file(const std::string& path, const std::string& content) {
  write_all(open_for_writing(path, O_APPEND), path, content);
}

void replace_link(const std::string& link, const std::string& target) {
  std::string temporary = name_beside(link);
  unlink(temporary.c_str());
  if (symlink(target.c_str(), temporary.c_str()) != 0) throw DiskError(link, errno);
  rename_or_remove(temporary, link);
}

std::string read_file(const std::string& path, std::size_t most) {
  auto fail = [&](const std::string& why) { throw std::runtime_error("cannot read " + path + ": " + why); };
  Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // a pipe without a writer too
  struct stat info {};
  if (!file || fstat(file.get(), &info) != 0) fail(std::strerror(errno));
  if (!S_ISREG(info.st_mode)) fail("no regular file");
  std::string text;
  char part[1 << 16];
  for (ssize_t n; (n = read(file.get(), part, sizeof part)) != 0;) {
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(std::strerror(errno));
    text.append(part, static_cast<std::size_t>(n));
    if (text.size() > most) fail("longer than " + std::to_string(most) + " bytes");
  }
  return text;
}

int newest_attempt(const std::string& directory) {
  int newest = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    newest = std::max(newest, attempt_number(entry.path().filename().native()));
  }
  return newest;
}

bool point_to_attempt(const std::string& link_directory, const std::string& name, int attempt) {
  std::string link = link_directory + "/" + name;
  std::error_code error;
  std::string target = std::filesystem::read_symlink(link, error);
  if (!error && attempt_number(target) > attempt) return true;
  bool is_ours = !error && attempt_number(target) > 0;
  if (!is_ours && std::filesystem::exists(std::filesystem::symlink_status(link))) return false;
  replace_link(link, std::string(kAttempt) + std::to_string(attempt) + "/" + name);
  return true;
}

}  // namespace dshang::monitor
