// Reads the readable form of records (dump.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/job/names.h"
#include "core/job/records.h"

namespace dshang::job {

struct Parsed {
  std::vector<RankRecords> ranks;  // in the order of the text
  std::string error;  // empty, or "line 12: ..." with what is allowed there; `ranks` is empty then
};

// What the loader promises of records (load.h) holds for parsed ones too.
Parsed parse(std::string_view text, Names& names);

}  // namespace dshang::job
