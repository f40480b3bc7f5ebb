#include "doctor/facts.h"

#include <array>
#include <cstdio>

namespace dshang::doctor {

std::optional<int> Facts::data_parallel() const {
  if (!world_size) return std::nullopt;
  int share = 1;
  if (config && config->readable()) {
    for (const char* key : {"tensor_parallel.autotp_size", "sequence_parallel_size"}) {
      int size = whole_part(config->number(key).value_or(1));
      if (size > 1) share *= size;
    }
  }
  return *world_size % share == 0 ? *world_size / share : *world_size;
}

bool older(const std::string& version, const std::string& than) {
  auto parts = [](const std::string& text) {
    std::array<int, 3> numbers{};
    std::sscanf(text.c_str(), "%d.%d.%d", &numbers[0], &numbers[1], &numbers[2]);
    return numbers;
  };
  return !version.empty() && parts(version) < parts(than);
}

}  // namespace dshang::doctor
