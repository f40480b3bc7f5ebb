// What lies in a checkpoint directory.
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>

#include "core/job/input_file.h"
#include "doctor/facts_file.h"

namespace dshang::doctor {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostFiles = 200000;
constexpr std::uint64_t kLongestHeader = 64 << 20;  // bytes, of a safetensors file
constexpr std::size_t kLongestEntry = 4096;         // of a line of a listing, or of latest; no path is longer
constexpr std::size_t kMostUnread = 4;              // that are named

void note_content(const std::string& name, const std::string& content, Checkpoint* checkpoint) {
  if (name == "latest") checkpoint->latest = content;
  if (name == "latest_universal") checkpoint->latest_universal = content;
}

// https://github.com/huggingface/safetensors#format: eight bytes length, then a JSON object.
bool has_empty_tensors(const std::string& path, double bytes) {
  job::InputFile file(path);
  auto fill = [&](char* to, std::size_t size) {
    for (std::size_t got = 1; size > 0 && got > 0; to += got, size -= got) got = file.read(to, size);
    if (size > 0) throw std::runtime_error(path + ": it ends within its header");
  };
  std::uint64_t length = 0;
  fill(reinterpret_cast<char*>(&length), sizeof length);
  if (length > kLongestHeader || static_cast<double>(length) > bytes)
    throw std::runtime_error(path + ": its header cannot be as long as it says");
  std::string text(length, '\0');
  fill(text.data(), length);
  Json header = read_object(text, path + ": its header");
  for (const auto& [name, tensor] : header.items()) {
    if (tensor.is_object() && tensor.value("shape", Json()) == Json::array({0})) return true;
  }
  return false;
}

void note_unread(const std::string& what, Checkpoint* checkpoint) {
  if (checkpoint->unread.size() < kMostUnread)
    checkpoint->unread.push_back(what);
  else if (checkpoint->unread.size() == kMostUnread)
    checkpoint->unread.push_back("more in " + checkpoint->path);
}

std::string trimmed_line(const std::string& text) {
  std::string line = text.substr(0, text.find('\n'));
  while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back()))) line.pop_back();
  return line;
}

// A file without content is one of a copy of the tree, made for this.
void look_into(const std::string& path, Checkpoint::File* file, Checkpoint* checkpoint) {
  const bool latest = file->path == "latest";
  try {
    if (file->path.ends_with(".safetensors") && file->bytes > 0)
      file->empty_tensors = has_empty_tensors(path, file->bytes);
    if (latest || file->path == "latest_universal")
      note_content(file->path, trimmed_line(job::read_input(path, kLongestEntry)), checkpoint);
  } catch (const std::runtime_error& failed) {
    if (latest) checkpoint->latest_unread = true;
    note_unread(failed.what(), checkpoint);
  }
}

// What an iterator would step over without a word.
void look_for_closed(const fs::path& folder, const std::string& name, Checkpoint* checkpoint) {
  if (access(folder.c_str(), R_OK | X_OK) == 0) return;
  note_unread(folder.string() + ": " + std::strerror(errno), checkpoint);
  checkpoint->closed.push_back(name);
}

void add_directory(const fs::path& root, Checkpoint* checkpoint) {
  std::error_code error;
  fs::directory_iterator readable(root, error);
  if (error) throw std::runtime_error(root.string() + ": " + error.message());
  fs::recursive_directory_iterator all(root, fs::directory_options::skip_permission_denied, error), end;
  for (; !error && all != end && checkpoint->files.size() < kMostFiles; all.increment(error)) {
    std::error_code of_file;
    std::string name = all->path().lexically_relative(root).string();
    if (all->is_directory(of_file)) look_for_closed(all->path(), name, checkpoint);
    if (!all->is_regular_file(of_file)) continue;
    double bytes = static_cast<double>(all->file_size(of_file));
    Checkpoint::File file{name, of_file ? 0 : bytes, false};
    look_into(all->path().string(), &file, checkpoint);
    checkpoint->files.push_back(std::move(file));
  }
  if (error) throw std::runtime_error(root.string() + ": " + error.message());
  struct statvfs disk {};
  if (statvfs(root.c_str(), &disk) == 0)
    checkpoint->free_bytes = static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize);
}

// What a line of `ls -l` names; "" where it is none, or no file.
std::optional<std::string> name_in_long_line(const std::string& line) {
  static const std::regex entry(
      "([-dlbcps])[-rwxsStT]{9}[.+@]?\\s+\\d+\\s+\\S+\\s+\\S+\\s+\\S+\\s+"
      "(?:\\S+\\s+\\d+\\s+[\\d:]+|\\d{4}-\\d\\d-\\d\\d\\s+[\\d:.]+(?:\\s+[-+]\\d{4})?)\\s(.+)");
  static const std::regex total("total \\S+");
  std::smatch parts;
  if (std::regex_match(line, total)) return "";
  if (!std::regex_match(line, parts, entry)) return std::nullopt;
  std::string name = parts[2];
  return parts[1] == "-" ? name : parts[1] == "l" ? name.substr(0, name.find(" -> ")) : "";
}

std::string without_dot(std::string path) {
  while (path.starts_with("./")) path.erase(0, 2);
  return path == "." ? "" : path;
}

// The paths that a listing names: one a line, as `find` has them, or those of `ls -R` and `ls -lR`, where a
// folder and a colon stand above its names.
std::vector<std::string> listed(const std::string& text) {
  std::vector<std::string> paths;
  std::string folder;
  std::istringstream lines(text);
  bool begins = true;  // of the text, or after an empty line
  for (std::string line; std::getline(lines, line);) {
    if (line.size() > kLongestEntry) continue;
    while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back()))) line.pop_back();
    bool head = begins && line.size() > 1 && line.ends_with(':');
    begins = line.empty();
    if (head) folder = without_dot(line.substr(0, line.size() - 1));
    std::string name = head || begins ? "" : name_in_long_line(line).value_or(line);
    if (!name.empty()) paths.push_back(without_dot(folder.empty() ? name : folder + "/" + name));
  }
  return paths;
}

// A listing made from above the checkpoint: the folder, with a slash, that has latest and all other files.
std::string root_of(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    std::string name = path.substr(0, path.find('='));
    if (name == "latest") return "";
    if (!name.ends_with("/latest")) continue;
    std::string root = name.substr(0, name.size() - 6);
    auto below = [&](const std::string& one) { return one.starts_with(root) || root == one + "/"; };
    if (std::all_of(paths.begin(), paths.end(), below)) return root;
  }
  return "";
}

// Where latest's content is not told, the only folder with shards is meant.
void guess_latest(Checkpoint* checkpoint) {
  std::set<std::string> tags;
  for (const Checkpoint::File& file : checkpoint->files) {
    std::size_t slash = file.path.find('/');
    if (slash != std::string::npos && file.path.ends_with("_states.pt"))
      tags.insert(file.path.substr(0, slash));
    if (file.path == "latest" && !checkpoint->latest) checkpoint->latest_unread = true;
  }
  if (checkpoint->latest_unread && tags.size() == 1) checkpoint->latest = *tags.begin();
}

void add_listing(const std::string& text, Checkpoint* checkpoint) {
  std::vector<std::string> paths = listed(text);
  std::string root = root_of(paths);
  for (const std::string& path : paths) {
    if (!path.starts_with(root)) continue;
    std::size_t equals = path.find('=');
    std::string name = path.substr(0, equals).substr(root.size());
    checkpoint->files.push_back({name, 0, false});
    if (equals != std::string::npos) note_content(name, path.substr(equals + 1), checkpoint);
  }
  guess_latest(checkpoint);
}

}  // namespace

Checkpoint read_checkpoint(const std::string& path) {
  Checkpoint checkpoint;
  checkpoint.path = job::input_name(path);
  std::error_code error;
  if (fs::is_directory(path, error)) {
    add_directory(path, &checkpoint);
    if (checkpoint.latest_unread) guess_latest(&checkpoint);
  } else {
    add_listing(read_text(path), &checkpoint);
  }
  return checkpoint;
}

}  // namespace dshang::doctor
