// A line of the launcher's hostfile (launcher/runner.py, _parse_hostfile): `worker-1 slots=8`.
#pragma once

#include <optional>
#include <string>

namespace dshang::doctor {

inline constexpr int kMostSlots = 100000;  // of a host: far more than any has

struct HostfileEntry {
  std::string host;
  int slots = 0;  // no more than kMostSlots
  bool too_many = false;
};

// Nothing where the line is empty, a comment, or no entry.
std::optional<HostfileEntry> entry_of(const std::string& line);

}  // namespace dshang::doctor
