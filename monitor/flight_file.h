// A copy of a rank's flight memory in a file; later copies write only what changed.
//
// The rank goes on writing meanwhile.  A block is copied when two reads of it agree, so that no record in the
// file is half of one and half of another, as long as the rank does not write that very block all the time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "monitor/mapping.h"

namespace dshang::monitor {

class FlightFile {
 public:
  explicit FlightFile(std::string path) : path_(std::move(path)) {}

  // Brings the file up to date; creates it.  Throws DiskError; the next call then tries the same blocks
  // again.
  void update(const Mapping& memory);
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::vector<std::uint64_t> hashes_;  // of the blocks in the file; 0 = only zeros so far
};

}  // namespace dshang::monitor
