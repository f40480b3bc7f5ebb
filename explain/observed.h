// What was seen in the logs, before anything is made of it.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "explain/entry.h"
#include "explain/line.h"
#include "explain/nccl_lines.h"
#include "explain/numbers.h"
#include "explain/traces.h"
#include "explain/watchdog.h"

namespace dshang::explain {

struct LogFile {
  std::string name;
  std::uint64_t bytes = 0, lines = 0;
  Place last_place;
  std::string last_line;  // the last that is not empty
  std::string trouble;    // why the rest could not be read
  std::string no_text{};  // what it is in the place of a log; "" nothing else
};

// All lines in which an entry was seen.
struct Sighting {
  Place first, last;
  std::uint64_t count = 0;
  std::set<Speaker> speakers;
  std::string text;            // of the first, or of one behind it that says more
  int pattern = 0;             // by which that was found, in the entry's order
  std::uint64_t progress = 0;  // steps or reported losses before it
};

struct Observed {
  std::vector<LogFile> files;
  std::map<std::string, Sighting> seen;       // by the entry's id
  std::map<Speaker, Sighting> out_of_memory;  // each rank's first
  std::map<Speaker, Sighting> out_of_memory_in_save;
  Sighting rank_failed;  // a launcher says so
  Traces traces;
  Numbers numbers;
  NcclLines nccl;
  Watchdog watchdog;
  std::set<Speaker> speakers;
  std::map<int, std::string> node_of;  // by global rank
  int world_size = 0;                  // 0 unknown
  int least_ranks = 0;                 // that there must be, by what torchrun tells of those that failed
  bool others_ended = false;           // by a launcher, because one rank failed
  bool config_printed = false, config_has_nvme = false, muon = false;  // muon: the optimizer's name was seen

  const Sighting* sighting(const std::string& id) const {
    auto found = seen.find(id);
    return found == seen.end() ? nullptr : &found->second;
  }
  bool trained() const { return numbers.progress() > 0; }
};

}  // namespace dshang::explain
