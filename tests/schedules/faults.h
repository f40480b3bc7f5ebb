// Mistakes of known classes, put into a healthy job at a known place.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "machine.h"

namespace dshang::schedules {

struct Fault {
  std::string type;                  // class of contract section 5
  std::string how;                   // which form of it
  std::vector<std::string> allowed;  // classes that are right by the contract's definitions, `type` first
  std::vector<int> suspects;
  bool silent = false;  // the job ends: nothing waits
};

const std::vector<std::string>& fault_types();

// Nothing where the job has no place for it.  Changes the programs, or `mishaps` (one a rank).
std::optional<Fault> inject(Job& job, std::vector<Mishap>& mishaps, const std::string& type, Rng& rng);

}  // namespace dshang::schedules
