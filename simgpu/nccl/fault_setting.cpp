// The setting SIMNCCL_FAULT, as text.
#include "simgpu/nccl/fault_setting.h"

#include <cstdlib>
#include <string>

#include "simgpu/nccl/abi.h"

namespace simgpu::nccl {
namespace {

using Kind = Fault::Kind;

struct Word {
  const char* text;
  Kind kind;
  int by_default;  // its value; 0: it has none
  int most;
};

constexpr Word kWords[] = {
    {"stall", Kind::kStall, 0, 0},
    {"kernel", Kind::kKernel, 0, 0},
    {"drop", Kind::kDrop, 0, 0},
    {"delay", Kind::kDelay, 1000, 86'400'000},
    {"error", Kind::kError, kRemoteError, kRemoteError},
    {"kill", Kind::kKill, 0, 0},
};

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char letter : text) {
    if (letter == separator)
      parts.emplace_back();
    else
      parts.back() += letter;
  }
  return parts;
}

// A number from `lowest` to `most`; false: something else.
bool number(const std::string& text, uint64_t lowest, uint64_t most, uint64_t* value) {
  if (text.empty() || text.size() > 18 || text.find_first_not_of("0123456789") != std::string::npos)
    return false;
  *value = strtoull(text.c_str(), nullptr, 10);
  return *value >= lowest && *value <= most;
}

bool parse_one(const std::string& text, Fault* fault) {
  const std::vector<std::string> parts = split(text, ':');
  uint64_t rank = 0;
  if (parts.size() < 3 || parts.size() > 4 || !number(parts[0], 0, INT32_MAX, &rank) ||
      !number(parts[1], 1, UINT64_MAX, &fault->call)) {
    return false;
  }
  for (const Word& word : kWords) {
    if (parts[2] != word.text) continue;
    uint64_t value = static_cast<uint64_t>(word.by_default);
    if (parts.size() == 4 && !number(parts[3], 1, static_cast<uint64_t>(word.most), &value)) return false;
    fault->rank = static_cast<int>(rank);
    fault->kind = word.kind;
    fault->value = static_cast<int>(value);
    return true;
  }
  return false;
}

}  // namespace

const char* fault_name(Fault::Kind kind) {
  for (const Word& word : kWords) {
    if (word.kind == kind) return word.text;
  }
  return "?";
}

bool parse_faults(const char* text, std::vector<Fault>* faults) {
  std::vector<Fault> parsed;
  for (const std::string& part : split(text, ',')) {
    Fault fault{};
    if (!parse_one(part, &fault)) return false;
    parsed.push_back(fault);
  }
  *faults = std::move(parsed);
  return true;
}

}  // namespace simgpu::nccl
