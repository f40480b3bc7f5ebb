// The files that the command line names.
#include <algorithm>
#include <filesystem>
#include <sstream>
#include <stdexcept>

#include "core/job/encoding.h"
#include "core/job/input_file.h"
#include "doctor/base64.h"
#include "doctor/facts_file.h"

namespace dshang::doctor {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestLine = 4096;      // of a hostfile
constexpr std::size_t kLargestText = 16 << 20;  // bytes; no config or script is larger

std::string trimmed(std::string text) {
  std::size_t from = text.find_first_not_of(" \t\r\n"), to = text.find_last_not_of(" \t\r\n");
  return from == std::string::npos ? "" : text.substr(from, to - from + 1);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (line.ends_with('\r')) line.pop_back();
    lines.push_back(line);
  }
  return lines;
}

}  // namespace

std::string read_text(const std::string& path) {
  std::string text = job::read_input(path, kLargestText);
  std::string wide = job::wide_hint(text, "text");
  if (!wide.empty()) throw std::runtime_error(job::input_name(path) + ": " + wide);
  return text;
}

std::map<std::string, std::string> read_environment(const std::string& text, const std::string& origin) {
  std::map<std::string, std::string> result;
  int number = 0;
  for (std::string line : lines_of(text)) {
    ++number;
    line = trimmed(line);
    if (line.empty() || line[0] == '#') continue;
    if (line.starts_with("export ") || line.starts_with("export\t")) line = trimmed(line.substr(7));
    std::size_t equals = line.find('=');
    if (equals == std::string::npos || equals == 0)
      throw std::runtime_error(origin + ": line " + std::to_string(number) + " is no KEY=VALUE");
    std::string value = line.substr(equals + 1);
    bool quoted = value.size() > 1 && (value[0] == '"' || value[0] == '\'') && value.back() == value[0];
    result[line.substr(0, equals)] = quoted ? value.substr(1, value.size() - 2) : value;
  }
  return result;
}

Config read_config(const std::string& path) {
  std::string text = job::read_input(path, kLargestText);
  Document document = read_document(text);
  return {job::input_name(path), std::move(document), std::move(text)};
}

std::optional<Config> config_in_base64(const std::string& text) {
  auto inner = text_in_base64(text);
  if (!inner) return std::nullopt;
  Config config{"the config in base64", read_document(*inner), *inner};
  return config.readable() ? std::optional(std::move(config)) : std::nullopt;
}

Hostfile read_hostfile(const std::string& path) {
  const std::string text = read_text(path);
  Hostfile hostfile{job::input_name(path), lines_of(text)};
  std::size_t broken = job::first_broken(text);
  std::string_view before = std::string_view(text).substr(0, broken);
  if (broken != std::string::npos)
    hostfile.no_utf8 = 1 + static_cast<int>(std::count(before.begin(), before.end(), '\n'));
  for (std::string& line : hostfile.lines) line.resize(std::min(line.size(), kLongestLine));
  return hostfile;
}

Model read_model(const std::string& path) {
  std::error_code error;
  std::string file = fs::is_directory(path, error) ? (fs::path(path) / "config.json").string() : path;
  const std::string text = read_text(file);
  std::string_view content = text;
  bool marked = job::take_mark(&content);
  return {job::input_name(file), read_object(content, job::input_name(file)), marked};
}

}  // namespace dshang::doctor
