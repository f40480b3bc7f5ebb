// What lies in a checkpoint directory.
#include <sys/statvfs.h>

#include <cctype>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "doctor/command.h"
#include "doctor/facts_file.h"

namespace dshang::doctor {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostFiles = 200000;
constexpr std::uint64_t kLongestHeader = 64 << 20;  // bytes, of a safetensors file

void note_content(const std::string& name, const std::string& content, Checkpoint* checkpoint) {
  if (name == "latest") checkpoint->latest = content;
  if (name == "latest_universal") checkpoint->latest_universal = content;
}

// https://github.com/huggingface/safetensors#format: eight bytes length, then a JSON object.
bool has_empty_tensors(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::uint64_t length = 0;
  if (!file.read(reinterpret_cast<char*>(&length), sizeof length) || length > kLongestHeader) return false;
  std::string text(length, '\0');
  if (!file.read(text.data(), static_cast<std::streamsize>(length))) return false;
  Json header = Json::parse(text, nullptr, false);
  if (!header.is_object()) return false;
  for (const auto& [name, tensor] : header.items()) {
    if (tensor.is_object() && tensor.value("shape", Json()) == Json::array({0})) return true;
  }
  return false;
}

void add_directory(const fs::path& root, Checkpoint* checkpoint) {
  std::error_code error;
  fs::directory_iterator readable(root, error);
  if (error) throw std::runtime_error(root.string() + ": " + error.message());
  fs::recursive_directory_iterator all(root, fs::directory_options::skip_permission_denied, error), end;
  for (; !error && all != end && checkpoint->files.size() < kMostFiles; all.increment(error)) {
    std::error_code of_file;
    if (!all->is_regular_file(of_file)) continue;
    std::string name = all->path().lexically_relative(root).string();
    double bytes = static_cast<double>(all->file_size(of_file));
    bool empty = name.ends_with(".safetensors") && has_empty_tensors(all->path());
    checkpoint->files.push_back({name, of_file ? 0 : bytes, empty});
    if (name == "latest" || name == "latest_universal")
      note_content(name, first_line(all->path().string()), checkpoint);
  }
  if (error) throw std::runtime_error(root.string() + ": " + error.message());
  struct statvfs disk {};
  if (statvfs(root.c_str(), &disk) == 0)
    checkpoint->free_bytes = static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize);
}

void add_listing(const std::string& text, Checkpoint* checkpoint) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back()))) line.pop_back();
    if (line.starts_with("./")) line.erase(0, 2);
    if (line.empty()) continue;
    std::size_t equals = line.find('=');
    std::string name = line.substr(0, equals);
    checkpoint->files.push_back({name, 0, false});
    if (equals != std::string::npos) note_content(name, line.substr(equals + 1), checkpoint);
  }
}

}  // namespace

Checkpoint read_checkpoint(const std::string& path) {
  Checkpoint checkpoint;
  checkpoint.path = path;
  std::error_code error;
  if (fs::is_directory(path, error)) {
    add_directory(path, &checkpoint);
  } else {
    add_listing(read_text(path), &checkpoint);
  }
  return checkpoint;
}

}  // namespace dshang::doctor
