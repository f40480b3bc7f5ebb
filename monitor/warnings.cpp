#include "monitor/warnings.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string_view>

#include "core/rank/param.h"
#include "monitor/descriptor.h"
#include "monitor/typing.h"

// The bounds of that section, made by the linker.
extern "C" const char __start_dshang_params[];
extern "C" const char __stop_dshang_params[];

namespace dshang::monitor {
namespace {

constexpr std::string_view kPrefix = "DSHANG_";
constexpr std::string_view kTypes[] = {"bool", "integer", "seconds", "string", "percent_or_bytes", "choice"};

// Whether what follows a magic is a descriptor: each text ends within its field, and the type is a known one.
bool is_descriptor(const rank::ParamDescriptor& param) {
  auto ends = [](const auto& field) { return std::memchr(field, 0, sizeof field) != nullptr; };
  if (!ends(param.type) || !ends(param.name) || !ends(param.fallback) || !ends(param.range) ||
      !ends(param.text)) {
    return false;
  }
  return std::find(std::begin(kTypes), std::end(kTypes), std::string_view(param.type)) != std::end(kTypes);
}

// A program with its debug information is large, and a starting monitor has ranks waiting: one read, and no
// stream.
std::string bytes_of(const std::string& path) {
  Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info {};
  if (!file || fstat(file.get(), &info) != 0) return {};
  std::string bytes(static_cast<std::size_t>(info.st_size), 0);
  std::size_t length = 0;
  while (length < bytes.size()) {
    ssize_t n = read(file.get(), bytes.data() + length, bytes.size() - length);
    if (n <= 0) break;
    length += static_cast<std::size_t>(n);
  }
  bytes.resize(length);
  return bytes;
}

// Descriptors lie in memory and in the file as they are (core/rank/param.h).
void collect(std::string_view bytes, std::vector<rank::ParamDescriptor>* found) {
  for (;;) {
    const void* magic = memmem(bytes.data(), bytes.size(), rank::kParamMagic, sizeof rank::kParamMagic);
    if (!magic) break;
    bytes.remove_prefix(static_cast<std::size_t>(static_cast<const char*>(magic) - bytes.data()));
    rank::ParamDescriptor param;
    if (bytes.size() < sizeof param) break;
    std::memcpy(&param, bytes.data(), sizeof param);
    bytes.remove_prefix(1);
    if (is_descriptor(param)) found->push_back(param);
  }
}

// What the program itself declares: its file may not be found where /proc is hidden.
std::vector<rank::ParamDescriptor> own_params() {
  std::vector<rank::ParamDescriptor> found;
  collect({__start_dshang_params, static_cast<std::size_t>(__stop_dshang_params - __start_dshang_params)},
          &found);
  return found;
}

// A file without any, or no file, gives none.
std::vector<rank::ParamDescriptor> params_of(const std::string& library) {
  std::vector<rank::ParamDescriptor> found;
  if (!library.empty()) collect(bytes_of(library), &found);
  return found;
}

// Of program and library, by name; one that both declare counts once.
std::vector<rank::ParamDescriptor> all_params(const std::vector<rank::ParamDescriptor>& of_library) {
  std::vector<rank::ParamDescriptor> found = own_params();
  found.insert(found.end(), of_library.begin(), of_library.end());
  auto name = [](const rank::ParamDescriptor& param) { return std::string_view(param.name); };
  std::stable_sort(found.begin(), found.end(),
                   [&](const auto& a, const auto& b) { return name(a) < name(b); });
  auto equal = [&](const auto& a, const auto& b) { return name(a) == name(b); };
  found.erase(std::unique(found.begin(), found.end(), equal), found.end());
  return found;
}

std::string unknown_name(std::string_view name, const std::vector<rank::ParamDescriptor>& params) {
  std::string text = std::string(kPrefix) + std::string(name) + " is no variable that dshang knows";
  auto nearer = [&](const auto& a, const auto& b) {
    return typing_distance(name, a.name) < typing_distance(name, b.name);
  };
  auto best = std::min_element(params.begin(), params.end(), nearer);
  if (best != params.end() &&
      typing_distance(name, best->name) * 2 <= std::max<std::size_t>(name.size(), 4)) {
    text += "; the nearest is " + std::string(kPrefix) + best->name;
  }
  return text;
}

}  // namespace

std::vector<std::string> environment_warnings(const std::string& library) {
  const std::vector<rank::ParamDescriptor> of_library = params_of(library);
  const std::vector<rank::ParamDescriptor> params = all_params(of_library);
  std::vector<std::string> warnings;
  for (char** at = environ; at && *at; ++at) {
    std::string_view line = *at;
    std::size_t equals = line.find('=');
    if (!line.starts_with(kPrefix) || equals == std::string_view::npos) continue;
    std::string_view name = line.substr(kPrefix.size(), equals - kPrefix.size());
    auto known =
        std::find_if(params.begin(), params.end(), [&](const auto& param) { return name == param.name; });
    char complaint[512];
    if (known == params.end()) {
      if (of_library.empty()) continue;  // it may be one of the library's
      warnings.push_back(unknown_name(name, params));
    } else if (rank::complain_about(*known, *at + equals + 1, complaint, sizeof complaint)) {
      warnings.emplace_back(complaint);
    }
  }
  std::sort(warnings.begin(), warnings.end());
  return warnings;
}

std::string params_text(const std::string& library) {
  std::string text;
  for (const rank::ParamDescriptor& param : all_params(params_of(library))) {
    text += std::string(kPrefix) + param.name + "\n    " + param.text + "\n    " + param.type + " " +
            param.range + "; default " + (*param.fallback ? param.fallback : "empty") + "\n";
  }
  return text;
}

}  // namespace dshang::monitor
